// From an MPI communicator to a channel for one open file.
//
// The members of a communicator learn once, by a few collective calls and messages of the MPI
// (introduction/acquaintance.h), what they must know of each other: the node of each rank, and the
// node segment. It is kept as an attribute of the communicator. Duplicates inherit it, because
// libraries duplicate the communicator at every open. On one node, opening a file then needs no MPI
// call.
#pragma once

#include <mpi.h>

#include <memory>

#include "base/result.h"
#include "group/channel.h"

namespace shima {

// A channel for the next file that the members of `comm` open. Collective over `comm`.
[[nodiscard]] Result<std::unique_ptr<Channel>> make_channel(MPI_Comm comm);

}  // namespace shima
