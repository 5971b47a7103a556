// Memory that begins where pages of files do, so that the kernel copies between the two at its
// usual speed (distance.h), and direct I/O accepts it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace shima {

struct FreePageBytes {
  static constexpr std::align_val_t alignment{4096};
  void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
};

using PageBytes = std::unique_ptr<std::byte[], FreePageBytes>;

// Not cleared.
[[nodiscard]] inline PageBytes make_page_bytes(std::size_t len_bytes) {
  return PageBytes(static_cast<std::byte*>(::operator new(len_bytes, FreePageBytes::alignment)));
}

}  // namespace shima
