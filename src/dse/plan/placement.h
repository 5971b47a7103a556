// Which task runs on which host and core, so that neighbors are near to each other.
//
// Tasks fill the hosts in the order of the list. The seats, a core for each task, are cut in two
// where they are farthest apart; the tasks are cut in two so that few neighbors are separated, and
// so on in each half. Afterwards tasks change seats in pairs as long as that brings neighbors
// nearer. If the order of the numbers is as good, it stays.
#pragma once

#include <vector>

#include "base/result.h"
#include "dse/plan/machine.h"
#include "dse/plan/topology.h"

namespace shima::dse {

struct HostRoom {
  int slots = 0;
  Machine machine;  // at least one core
};

struct Seat {
  int host = 0;
  int core = 0;  // index in the machine; shared by several tasks if there are more than cores
  friend bool operator==(const Seat&, const Seat&) = default;
};

// The seat of each task. There must be enough slots.
[[nodiscard]] std::vector<Seat> place_tasks(const Topology& topology,
                                            const std::vector<HostRoom>& hosts);

// Pairs of neighbors, by what separates them.
struct Separation {
  int pairs = 0;
  int on_other_hosts = 0;
  int in_other_packages = 0;  // of one host
};
[[nodiscard]] Separation separation_of(const Topology& topology, const std::vector<HostRoom>& hosts,
                                       const std::vector<Seat>& seats);

}  // namespace shima::dse
