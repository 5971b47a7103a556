// Node leaders meet by messages of one MPI communicator.
#pragma once

#include <mpi.h>

#include <functional>

#include "group/node_channel.h"
#include "group/rounds_link.h"
#include "mpiio/mpi/await.h"

namespace shima {

class MpiNodeLink final : public RoundsLink {
 public:
  // `near` and `peers` must outlive the link. `poll` is called from time to time while the leader
  // waits for members near it.
  MpiNodeLink(MPI_Comm comm, const NodeGround& near, const Peers& peers, std::function<void()> poll)
      : RoundsLink(near.topology, near.node), comm_(comm), peers_(peers), poll_(std::move(poll)) {}

  void poll() noexcept override { poll_(); }

 private:
  [[nodiscard]] Status swap(int peer, const Note* out, Note* in) override;

  MPI_Comm comm_;
  const Peers& peers_;
  std::function<void()> poll_;
};

}  // namespace shima
