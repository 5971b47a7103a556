// The plan of a collective call, computed identically by every member.
//
// make_plan is a pure function of exchanged values: a value that only one rank knows must be in its
// post first, or ranks would choose differently and wait for each other for ever.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/direction.h"
#include "base/units.h"
#include "collective/path.h"
#include "collective/post.h"
#include "group/channel.h"
#include "layout/subfile_cursor.h"

namespace shima {

// Settings by the user or a measurement for collective calls.
struct Tuning {
  std::optional<Path> path;        // nothing: Shima chooses
  int max_agents = 0;              // 0: as many as cores
  std::uint64_t window_bytes = 0;  // 0: automatic
};

struct Agent {
  int rank = 0;
  std::vector<Domain> domains;  // parts of different subfiles, or one part of one
};

struct Plan {
  Path path = Path::independent;
  std::vector<Agent> agents;
  std::uint64_t window_bytes = 0;
  std::uint64_t granule_bytes = 1;
};

// The properties of the members' group that a plan depends on.
struct Terrain {
  std::span<const Member> members;
  const Layout& layout;
  bool can_pull = false;      // members of a node access each other's memory
  bool one_space = false;     // by its address, like their own
  bool can_pack = false;      // all members share windows
  bool can_message = false;   // members can send each other messages
  bool caches_apart = false;  // nodes do not see at once what other nodes write
};

// The size of a window, from the requested one; 0: not requested.
[[nodiscard]] std::uint64_t window_size(std::uint64_t wanted_bytes);

// A common divisor of `start`, of every piece and of every distance between pieces and to offset 0.
[[nodiscard]] std::uint64_t common_granule(std::span<const Post> posts, std::uint64_t start);

// How many agents a collective of these members has at most.
[[nodiscard]] int agent_count(std::span<const Member> members);

[[nodiscard]] Plan make_plan(std::span<const Post> posts, Direction direction,
                             const Terrain& terrain, const Tuning& tuning);

}  // namespace shima
