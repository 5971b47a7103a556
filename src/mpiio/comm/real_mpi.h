// The MPI's own function behind a call that Shima takes over.
//
// Both names of such a call, MPI_X and PMPI_X, are ours, so that the one below is found by asking
// the dynamic linker for the next library that has it.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#define SHIMA_REAL(name)                                                            \
  ([] {                                                                             \
    static const auto real =                                                        \
        reinterpret_cast<decltype(&MPI_##name)>(::dlsym(RTLD_NEXT, "PMPI_" #name)); \
    return real;                                                                    \
  }())
