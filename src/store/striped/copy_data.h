// Copies the bytes of one file into another and keeps holes.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/units.h"
#include "store/striped/logical_file.h"

namespace shima {

// Receives the progress of a copy; an error ends the copy.
using CopyProgress = std::function<Status(FileOffset done, FileOffset end)>;

// Copies [range) to the same offsets in `to`, whose bytes there must be zeros or already copied.
// Zeros are not written, so that holes stay holes. Does not set the size of `to`.
[[nodiscard]] Status copy_data(LogicalFile& from, LogicalFile& to, FileRange range,
                               const CopyProgress& progress);

}  // namespace shima
