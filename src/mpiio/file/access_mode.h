// Converts MPI_MODE_* bits to an AccessMode, with the checks that depend on them.
#pragma once

#include "base/result.h"
#include "file/file.h"

namespace shima {

// bad_access_mode for combinations that MPI does not allow.
[[nodiscard]] Result<AccessMode> access_mode_of(int amode);

// Whether a file in this mode may be read, written, or accessed at explicit offsets.
[[nodiscard]] Status check_readable(const AccessMode& mode);
[[nodiscard]] Status check_writable(const AccessMode& mode);
[[nodiscard]] Status check_not_sequential(const AccessMode& mode);

}  // namespace shima
