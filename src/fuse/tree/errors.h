// Converts an Error to the errno for the kernel, and a failed system call to an Error.
#pragma once

#include <cerrno>
#include <string>

#include "base/result.h"

namespace shima::fuse {

// EIO for errors without an errno (a damaged master file, a missing subfile).
[[nodiscard]] int errno_of(const Error& error);
[[nodiscard]] inline int errno_of(const Status& status) {
  return status ? 0 : errno_of(status.error());
}

// Converts the return value of a system call. The error has no message: the refusal is an answer to
// the user, not a problem of the mount.
[[nodiscard]] inline Status done(int code) {
  if (code >= 0) return {};
  return std::unexpected(Error{code_of_errno(errno), errno, {}});
}
[[nodiscard]] inline std::unexpected<Error> refusal(int sys_errno) {
  return std::unexpected(Error{code_of_errno(sys_errno), sys_errno, {}});
}

}  // namespace shima::fuse
