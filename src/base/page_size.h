// The size of a page of memory: 4 KiB on x86, up to 64 KiB elsewhere.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace shima {

[[nodiscard]] inline std::size_t page_size() {
  static const auto size_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size_bytes;
}

}  // namespace shima
