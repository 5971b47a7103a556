// The MPI's own function behind a call that Shima intercepts.
//
// Shima defines both names of such a call, MPI_X and PMPI_X; the MPI's own is looked up in its
// library.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

namespace shima {

// The handle of the MPI's library, for dlsym.
[[nodiscard]] void* real_library();

}  // namespace shima

#define SHIMA_REAL(name)                                                                          \
  ([] {                                                                                           \
    static const auto real =                                                                      \
        reinterpret_cast<decltype(&MPI_##name)>(::dlsym(::shima::real_library(), "PMPI_" #name)); \
    return real;                                                                                  \
  }())
