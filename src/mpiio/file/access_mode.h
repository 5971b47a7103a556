// Converts MPI_MODE_* bits to an AccessMode, with the checks that depend on them.
#pragma once

#include "base/result.h"
#include "file/file.h"

namespace shima {

// bad_access_mode for combinations that MPI does not allow.
[[nodiscard]] Result<AccessMode> access_mode_of(int amode);

// Whether a file in this mode may be read, written, or accessed at explicit offsets.
[[nodiscard]] Status refuse_reading();
[[nodiscard]] Status refuse_writing();
[[nodiscard]] Status refuse_offsets();
[[nodiscard]] inline Status check_readable(const AccessMode& mode) {
  return mode.read ? Status{} : refuse_reading();
}
[[nodiscard]] inline Status check_writable(const AccessMode& mode) {
  return mode.write ? Status{} : refuse_writing();
}
[[nodiscard]] inline Status check_not_sequential(const AccessMode& mode) {
  return mode.sequential ? refuse_offsets() : Status{};
}

}  // namespace shima
