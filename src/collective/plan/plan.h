// The plan of a collective call, computed identically by every member.
//
// make_plan is a pure function of joined values: a value that only one rank knows must be in its
// digest first, or ranks would choose differently and wait for each other for ever.
#pragma once

#include "base/direction.h"
#include "collective/plan/agent_map.h"
#include "collective/plan/chooser.h"
#include "collective/plan/digest.h"
#include "collective/plan/path.h"
#include "collective/plan/terrain.h"

namespace shima {

struct Plan {
  Choice choice;
  // The rest has no meaning if every member does its own I/O.
  Path path = Path::pull;
  NearPath near = NearPath::pull;
  int subgroup_members = 0;  // the most members of a subgroup; 0: all on a node
  RequestsTo requests = RequestsTo::all;
  AgentMap agents;
  std::uint64_t window_bytes = 0;
  std::uint64_t granule_bytes = 1;
  bool direct = false;        // a transfer bypasses the page cache
  std::uint64_t call_id = 0;  // for I/O nodes; no other call has it

  [[nodiscard]] bool is_own_io() const { return choice.strategy == Strategy::independent; }
};

// I/O nodes have memory for windows of this size.
inline constexpr std::uint64_t most_io_node_window_bytes = std::uint64_t{4} << 20;

// The size of a window of these members that is used if none is requested.
[[nodiscard]] std::uint64_t usual_window_bytes(const Topology& topology, Direction direction);
// That of one call: at most the usual size, and less in a communicator's first calls on one node.
[[nodiscard]] std::uint64_t call_window_bytes(const Digest& digest, const Topology& topology,
                                              Direction direction);
// The size of a window, from the requested one; 0: the usual one.
[[nodiscard]] std::uint64_t window_size(std::uint64_t wanted_bytes, std::uint64_t usual_bytes);

// `history`: of the file; null: it has none.
[[nodiscard]] Plan make_plan(const Digest& digest, Direction direction, const Terrain& terrain,
                             const Tuning& tuning, const History* history = nullptr);

}  // namespace shima
