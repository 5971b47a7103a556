// Finds Shima's library and the MPI's among the libraries of the process.
//
// The audit library gives the MPI's library the name of the slot, besides its own. If both were
// loaded by a dlopen (Python), only the libraries of the same dlopen would see our symbols, and the
// next dlopen might find the MPI's alone. So this library makes itself, and with it the MPI,
// visible to all, as both are in a program that is linked with MPI.
#include "mpiio/mpi/real_mpi.h"

#include <string>

#include "audit/names.h"

namespace shima {
namespace {

#if defined(SHIMA_MPI_MPICH)
constexpr auto own_family = audit::Family::mpich;
#elif defined(SHIMA_MPI_OPENMPI)
constexpr auto own_family = audit::Family::openmpi;
#else
constexpr auto own_family = audit::Family::standard;
#endif

__attribute__((constructor)) void become_visible() {
  static const char in_this_library = 0;
  Dl_info where{};
  if (::dladdr(&in_this_library, &where) != 0)
    ::dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
}

}  // namespace

void* real_library() {
  static void* const library = ::dlopen(
      std::string(audit::libraries_of(own_family).real_mpi_slot).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library;
}

}  // namespace shima
