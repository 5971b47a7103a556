// Opens the copy of UCX that this process may use.
//
// Two copies of UCX in one process break each other, and MPIs bring their own: the first copy of a
// soname that the loader maps serves all that ask for it later. So this is the copy that is in the
// process already, else the one that the process's MPI would load, else the system's.
#pragma once

#include <string>

#include "base/result.h"

namespace shima::lapi {

struct UcxCopy {
  void* handle = nullptr;  // of dlopen(), never closed: UCX has threads
  std::string path;
};

// The library to use instead of the one that is found; for tests.
inline constexpr const char* ucx_library_variable = "SHIMA_UCX_LIBRARY";

[[nodiscard]] Result<UcxCopy> open_ucx_copy();

}  // namespace shima::lapi
