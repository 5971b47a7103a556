// What the kernel is told of an Error, and an Error of a system call that failed.
#pragma once

#include <cerrno>
#include <string>

#include "base/result.h"

namespace shima::fuse {

// Whatever has no number of its own (a damaged master file, a missing subfile) is EIO.
[[nodiscard]] int errno_of(const Error& error);
[[nodiscard]] inline int errno_of(const Status& status) {
  return status ? 0 : errno_of(status.error());
}

// From the return value of a system call; for refusals that are the user's own affair, so without
// words.
[[nodiscard]] inline Status done(int code) {
  if (code >= 0) return {};
  return std::unexpected(Error{code_of_errno(errno), errno, {}});
}
[[nodiscard]] inline std::unexpected<Error> refusal(int sys_errno) {
  return std::unexpected(Error{code_of_errno(sys_errno), sys_errno, {}});
}

}  // namespace shima::fuse
