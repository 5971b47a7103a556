// Copies between memory of this process that perhaps is not mapped.
#pragma once

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace shima::lapi {

// False if the memory cannot be read or written; only `is_unknown` memory is copied so, by the
// kernel if that can do it.
[[nodiscard]] inline bool copy_carefully(void* to, const void* from, std::size_t len_bytes,
                                         bool is_unknown) {
  if (is_unknown) {
    const iovec here{const_cast<void*>(from), len_bytes};
    const iovec there{to, len_bytes};
    const ssize_t copied = ::process_vm_writev(::getpid(), &here, 1, &there, 1, 0);
    if (copied >= 0 || errno == EFAULT) return copied == static_cast<ssize_t>(len_bytes);
  }
  std::memcpy(to, from, len_bytes);
  return true;
}

}  // namespace shima::lapi
