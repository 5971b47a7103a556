// Copying the bytes of one file into another, without its holes.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/units.h"
#include "store/striped/logical_file.h"

namespace shima {

// Told how far a copy has come, of how much; an error ends the copy.
using CopyProgress = std::function<Status(FileOffset done, FileOffset end)>;

// Copies [range) to the same place in `to`, whose bytes there must be zeros, or those to be copied.
// Zeros are not written, so that holes stay holes; the size of `to` is left to the caller.
[[nodiscard]] Status copy_data(LogicalFile& from, LogicalFile& to, FileRange range,
                               const CopyProgress& progress);

}  // namespace shima
