// Anonymous pages of host memory, which a driver can pin, and which every system call and another
// rank's process_vm_readv() can access.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"

namespace shima {

class HostPages {
 public:
  HostPages() = default;
  HostPages(HostPages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  HostPages& operator=(HostPages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~HostPages() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] static Result<HostPages> map(std::size_t len_bytes) {
    void* const start =
        ::mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
      return fail(Code::no_memory, "mapping a buffer for copies from and to a device", errno);
    HostPages pages;
    pages.bytes_ = {static_cast<std::byte*>(start), len_bytes};
    return pages;
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace shima
