// One data access call: what it requests, and the work to execute.
//
// An argument error of a collective call is not returned at once: the member takes part with the
// error instead of a transfer, so that the others neither hang nor succeed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

#include "base/direction.h"
#include "file/background.h"
#include "mpiio/datarep/representations.h"
#include "mpiio/file/open_file.h"
#include "observe/call.h"

namespace shima {

struct Access {
  enum class Scope : std::uint8_t { alone, together };

  using Pointer = call::Pointer;

  Direction direction;
  Scope scope;
  Pointer pointer = Pointer::individual;
  MPI_Offset offset = 0;       // in etypes, with an explicit offset
  const void* site = nullptr;  // where the program calls
  call::Mode mode = call::Mode::blocking;

  [[nodiscard]] CallPlace call() const {
    return {call::mpi_access(direction, scope == Scope::together, pointer, mode), site};
  }
};

// A call whose arguments are checked and whose place in the file is reserved, so that any thread
// can execute it. `status` is an error of this member; the work of a collective call must run
// nevertheless.
struct PreparedAccess {
  Status status;
  Work work;
  // What the program's own thread must do on completion; returns the bytes of the buffer that were
  // moved. Null: nothing, and the work returns the bytes.
  std::function<Outcome64(const Outcome64&)> conclude = nullptr;
  bool by_caller = false;        // the work takes less time than to hand it to a thread
  Begin begin = Begin::at_once;  // in a thread

  [[nodiscard]] Outcome64 concluded(const Outcome64& outcome) const {
    return conclude ? caught([&] { return conclude(outcome); }) : outcome;
  }
};

// Local.
[[nodiscard]] PreparedAccess prepare(OpenFile& file, const Access& access, const Buffer& buffer);

// The whole access. An argument error of an independent access is returned at once.
[[nodiscard]] Outcome64 carry_out(OpenFile& file, const Access& access, const Buffer& buffer);

// Sets a status, unless the caller ignores it.
void set_status(MPI_Status* status, std::uint64_t len_bytes);

}  // namespace shima
