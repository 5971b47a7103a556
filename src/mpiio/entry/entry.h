// Helpers of all entry points.
//
// Each entry point is defined as MPI_X and exported as PMPI_X too: some language bindings call one
// name, some the other, and a file handle of Shima must never reach the MPI's own file layer.
#pragma once

#include <mpi.h>

#include "mpiio/file/errors.h"
#include "mpiio/file/open_file.h"
#include "observe/trace_log.h"

// Not every mpi.h declares its functions with default visibility.
#define SHIMA_EXPORT(name)                                                           \
  extern "C" decltype(MPI_##name) MPI_##name __attribute__((visibility("default"))); \
  extern "C" decltype(MPI_##name) PMPI_##name                                        \
      __attribute__((alias("MPI_" #name), visibility("default")))

// Calls with large counts exist since MPI-4.
#if MPI_VERSION >= 4
#define SHIMA_LARGE_COUNTS 1
#else
#define SHIMA_LARGE_COUNTS 0
#endif

namespace shima {

// Runs `body(OpenFile&)` for the file behind `handle`.
template <class Body>
int on_file(MPI_File handle, Body body) {
  return guarded(handle, [&]() -> Status {
    OpenFile* const file = find_open_file(handle);
    return file != nullptr ? Status(body(*file)) : not_open(handle);
  });
}

inline void end_trace(const Traced& traced, const CallPlace& place, std::uint16_t file,
                      bool failed) {
  TraceEvent event = plain_event(file);
  event.failed = failed ? 1 : 0;
  traced.end(place, event);
}

// The same for a call that is traced, except those that move data: they trace themselves.
template <class Body>
int on_file_traced(MPI_File handle, const CallPlace& place, Body body) {
  const Traced traced;
  std::uint16_t number = 0;
  const int result = on_file(handle, [&](OpenFile& file) -> Status {
    number = file.file().trace_number();
    return body(file);
  });
  if (traced.on()) end_trace(traced, place, number, result != MPI_SUCCESS);
  return result;
}

// Shows this rank to `shima top`, and starts its trace; MPI is initialized.
void show_rank();

}  // namespace shima
