// Which ranks of a communicator run on which node, and the memory that those of a node share.
//
// In the first meeting each rank tells its node, its NUMA domain and its process. Few ranks are
// mostly on one node, so rank 0 makes memory for all of them before and tells where it is;
// otherwise the first rank of each node makes it after, and a second meeting tells. A last one
// finds out whether all have mapped it.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "base/process/process_handle.h"
#include "group/node/node_segment.h"
#include "group/topology.h"
#include "ipc/shared_buffer.h"
#include "mpiio/comm/first_meetings.h"

namespace shima {

// Which ranks run on which node, before any memory is shared.
struct Neighbourhood {
  int rank = 0;
  std::vector<Member> members;
  std::vector<int> local_ranks;  // the ranks of this rank's node, by their indices there
  std::vector<ProcessIdentity> local_processes;  // the processes of local_ranks
  int local_index = 0;
  int node_count = 0;

  // An error once a process of this rank's node has ended.
  [[nodiscard]] Status check_local() const {
    for (std::size_t i = 0; i < local_processes.size(); ++i)
      if (static_cast<int>(i) != local_index) SHIMA_TRY(check_alive(local_processes[i]));
    return {};
  }
};

// Memory that the ranks of a node may share.
struct OfferedMemory {
  SharedBuffer made;  // by this rank; open until all have mapped it
  Status making;      // whether this rank, if it had to, could make it
  SharedRef ref;      // kind none: not known, or could not be made
};

// What this rank has learned of the others in the first meeting.
struct Acquaintance {
  Result<Neighbourhood> around;  // an error of this rank alone
  OfferedMemory memory;
  bool few_on_one_node = false;  // they share rank 0's memory
};

// `ready`: the result of this rank's own preparation. Collective over `comm`.
[[nodiscard]] Result<Acquaintance> look_around(MPI_Comm comm, FirstMeetings& meetings,
                                               const Status& ready);

// The shared memory of this rank's node. Null, on all ranks, if any node cannot share memory.
// Collective.
[[nodiscard]] Result<std::shared_ptr<NodeSegment>> share_memory(FirstMeetings& meetings,
                                                                Acquaintance& met);

// Where a node's members cannot share memory, every rank is a node of its own.
void settle_apart(Neighbourhood& around);

}  // namespace shima
