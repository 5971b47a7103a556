// The inputs of a plan that are no joined digest: the members' group, and the user's settings.
#pragma once

#include <cstdint>
#include <optional>

#include "collective/plan/path.h"
#include "collective/plan/strategy.h"
#include "group/caches.h"
#include "group/topology.h"
#include "layout/layout.h"

namespace shima {

// Settings by the user or a measurement for collective calls.
struct Tuning {
  std::optional<Strategy> strategy = {};    // nothing: Shima chooses
  std::optional<Path> path = {};            // nothing: Shima chooses
  int max_agents = 0;                       // 0: Shima chooses
  std::uint64_t window_bytes = 0;           // 0: automatic
  int subgroup_members = 0;                 // the most members of a subgroup; 0: all on a node
  std::optional<RequestsTo> requests = {};  // nothing: by the number of nodes
  bool atomic = false;                      // every member's access is a separate unit

  // Whether every member does its own I/O, whatever the access.
  [[nodiscard]] bool owners_move() const { return atomic || strategy == Strategy::independent; }
  // Whether nothing but the access decides how its bytes move.
  [[nodiscard]] bool is_open() const { return !atomic && !strategy && !path; }
};

// The properties of the members' group that a plan depends on.
struct Terrain {
  const Topology& topology;  // must outlive the plan
  const Layout& layout;      // must outlive the plan
  bool can_pull = false;     // members of a node access each other's memory
  bool one_space = false;    // by its address, like their own
  bool can_pack = false;     // members of a node share windows
  bool can_message = false;  // members can send each other messages
  Caches caches = Caches::coherent;
};

}  // namespace shima
