// The plan of a collective call, computed identically by every member.
//
// make_plan is a pure function of joined values: a value that only one rank knows must be in its
// digest first, or ranks would choose differently and wait for each other for ever.
#pragma once

#include <optional>

#include "base/direction.h"
#include "base/units.h"
#include "collective/plan/agent_map.h"
#include "collective/plan/digest.h"
#include "collective/plan/path.h"

namespace shima {

// Settings by the user or a measurement for collective calls.
struct Tuning {
  std::optional<Path> path;        // nothing: Shima chooses
  int max_agents = 0;              // 0: as many as cores
  std::uint64_t window_bytes = 0;  // 0: automatic
  int subgroup_members = 0;        // the most members of a subgroup; 0: all on a node
};

struct Plan {
  Path path = Path::independent;
  NearPath near = NearPath::pull;
  int subgroup_members = 0;  // the most members of a subgroup; 0: all on a node
  AgentMap agents;
  std::uint64_t window_bytes = 0;
  std::uint64_t granule_bytes = 1;
};

// The properties of the members' group that a plan depends on.
struct Terrain {
  const Topology& topology;  // must outlive the plan
  const Layout& layout;
  bool can_pull = false;      // members of a node access each other's memory
  bool one_space = false;     // by its address, like their own
  bool can_pack = false;      // members of a node share windows
  bool can_message = false;   // members can send each other messages
  bool caches_apart = false;  // nodes do not see at once what other nodes write
};

// Contiguous accesses of so many bytes a member are not worth gathering.
inline constexpr std::uint64_t few_bytes = 16 * 1024;

// The size of a window, from the requested one; 0: not requested.
[[nodiscard]] std::uint64_t window_size(std::uint64_t wanted_bytes);

[[nodiscard]] Plan make_plan(const Digest& digest, Direction direction, const Terrain& terrain,
                             const Tuning& tuning);

}  // namespace shima
