// The memory that the ranks of a node share.
//
// Few ranks on one node know already where rank 0 has made it. Otherwise the leader of each node
// makes it, and tells its node, together with the processes of the node where there are many
// ranks. At last all ranks find out whether all have mapped it.
#pragma once

#include <mpi.h>

#include <memory>

#include "group/node/node_segment.h"
#include "mpiio/comm/introduction/acquaintance.h"

namespace shima {

// The shared memory of this rank's node. Null, on all ranks, if any node cannot share memory.
// `ready`: the error of this rank alone. Collective.
[[nodiscard]] Result<std::shared_ptr<NodeSegment>> share_memory(MPI_Comm comm, Acquaintance& met,
                                                                const Status& ready);

}  // namespace shima
