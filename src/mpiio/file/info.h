// MPI_Info objects as lists of hints, and back.
#pragma once

#include <mpi.h>

#include <vector>

#include "base/result.h"
#include "file/hint_sources.h"

namespace shima {

// Every key and value; nothing for MPI_INFO_NULL.
[[nodiscard]] std::vector<HintSetting> settings_of(MPI_Info info);

// A new object, to be freed by the receiver.
[[nodiscard]] Result<MPI_Info> make_info(const std::vector<HintSetting>& settings);

}  // namespace shima
