// Binds this library's calls of PMPI_ to the MPI that it serves.
//
// The symbol search order has the first MPI of a process that Shima has made visible before all
// that come later by dlopen. A build for a second MPI would call the first one.  So each build asks
// its own MPI's library for the calls, and puts them where the linkage table would find them later.
#include <string_view>

#include "mpiio/mpi/linkage.h"
#include "mpiio/mpi/real_mpi.h"

// The first byte of this library.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;

namespace shima {
namespace {

// The linker is told to bind lazily, so the table can be written to.
__attribute__((constructor)) void bind_own_mpi_calls() {
  const auto linkage = Linkage::of(_DYNAMIC, reinterpret_cast<ElfW(Addr)>(&__ehdr_start));
  linkage.for_each_import(linkage.calls, [](const char* name, void** slot) {
    if (!std::string_view(name).starts_with("PMPI_")) return;
    if (void* const call = ::dlsym(real_library(), name); call != nullptr) *slot = call;
  });
}

}  // namespace
}  // namespace shima
