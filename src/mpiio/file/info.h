// Converts MPI_Info objects to lists of hints, and back.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/result.h"
#include "file/hints/hint_sources.h"

namespace shima {

// All keys and values; nothing for MPI_INFO_NULL.
[[nodiscard]] std::vector<HintSetting> settings_of(MPI_Info info);

// A new object, which the receiver frees.
[[nodiscard]] Result<MPI_Info> make_info(const std::vector<HintSetting>& settings);

}  // namespace shima
