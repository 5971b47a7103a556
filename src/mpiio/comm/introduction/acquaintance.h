// How the ranks of a communicator find out who is where.
//
// In the first meeting each rank tells its node, its NUMA domain and its process: all other ranks
// where they are few, rank 0 where they are many (introduction/many_ranks.h). Few ranks are mostly
// on one node, so rank 0 makes memory for all of them before and tells where it is. In all other
// cases messages follow.
#pragma once

#include <mpi.h>

#include <optional>

#include "ipc/shared_buffer.h"
#include "mpiio/comm/introduction/first_meetings.h"
#include "mpiio/comm/introduction/first_messages.h"
#include "mpiio/comm/introduction/neighbourhood.h"

namespace shima {

// Memory that the ranks of a node may share.
struct OfferedMemory {
  SharedBuffer made;  // by this rank; open until all have mapped it
  Status making;      // whether this rank, if it had to, could make it
  SharedRef ref;      // kind none: not known, or could not be made

  [[nodiscard]] static OfferedMemory make(int member_count);
};

// What this rank has learned of the others.
struct Acquaintance {
  Neighbourhood around;
  OfferedMemory memory;
  bool are_many = false;                  // only leaders know all processes of their node
  std::optional<FirstMessages> messages;  // none for few ranks on one node that may share memory
};

// `ready`: the result of this rank's own preparation. `last`: the error of this rank alone, which
// it brings to the next meeting. Collective over `comm`.
[[nodiscard]] Result<Acquaintance> look_around(MPI_Comm comm, FirstMeetings& meetings,
                                               const Status& ready, Status& last);

}  // namespace shima
