#include "mpiio/comm/mpi_node_link.h"

#include "group/messenger.h"

namespace shima {
namespace {

constexpr int meeting_tag = lane_count + 1;  // the messenger uses those below
constexpr const char* doing = "meeting the other nodes";

}  // namespace

Status MpiNodeLink::swap(int peer, const Note* out, Note* in) {
  MPI_Request incoming = MPI_REQUEST_NULL;
  MPI_Request outgoing = MPI_REQUEST_NULL;
  const PeerWatch watch(peers_);
  SHIMA_TRY(watch.check_now());
  if (in != nullptr)
    SHIMA_TRY(watch.explain(
        checked(PMPI_Irecv(in, sizeof *in, MPI_BYTE, peer, meeting_tag, comm_, &incoming), doing)));
  if (out != nullptr)
    SHIMA_TRY(watch.explain(checked(
        PMPI_Isend(out, sizeof *out, MPI_BYTE, peer, meeting_tag, comm_, &outgoing), doing)));
  SHIMA_TRY(await(incoming, doing, peers_));
  return await(outgoing, doing, peers_);
}

}  // namespace shima
