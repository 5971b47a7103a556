// Situations in which collective calls are planned: members, accesses, settings.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "collective/plan/plan.h"

namespace shima::test {

using Random = std::mt19937_64;
inline std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// `count` pieces of `len` bytes, `stride` apart, from `base`; memory is one block.
inline Post post_of(std::uint64_t count, std::uint64_t len, std::uint64_t stride,
                    std::uint64_t base) {
  const std::uint64_t bytes = count * len;
  if (bytes == 0) return {};
  const Slice file{Pattern::strided(count, as_signed(stride), Pattern::contiguous(len)),
                   as_signed(base), 0, bytes};
  return make_post(file, {Pattern::contiguous(bytes), 0, 0, bytes});
}

// The interleaved pieces of all members.
inline std::vector<Post> interleaved(std::uint64_t members, std::uint64_t count,
                                     std::uint64_t len) {
  std::vector<Post> posts;
  for (std::uint64_t i = 0; i < members; ++i)
    posts.push_back(post_of(count, len, members * len, i * len));
  return posts;
}

inline std::vector<Member> members_on(int nodes, int count, int cores) {
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) members.push_back({i * nodes / count, cores});
  return members;
}

struct Situation {
  std::vector<Post> posts;
  bool cached = false;  // all that is accessed
  bool direct = false;
  std::vector<Member> members;
  Tuning tuning{};
  Topology topology{};
  Layout layout = Layout::plain();
  bool one_node = true;
  bool can_pull = true;
  bool one_space = false;
  Caches caches = Caches::coherent;
  std::vector<std::uint64_t> io_nodes{};  // what each member says of them, in turn; empty: none

  [[nodiscard]] Digest digest() const {
    Digest all;
    for (std::size_t i = 0; i < posts.size(); ++i) {
      Digest one = digest_of(posts[i]);
      if (!io_nodes.empty()) one.io_nodes = io_nodes[i % io_nodes.size()];
      one.call_id = i;
      if (cached) one.cached = 1;
      if (direct) one.direct = 1;
      all = i == 0 ? one : join(all, one);
    }
    return all;
  }
  [[nodiscard]] Terrain terrain() {
    topology = Topology(members);
    return {.topology = topology,
            .layout = layout,
            .can_pull = can_pull,
            .one_space = one_space,
            .can_pack = true,
            .can_message = !one_node,
            .caches = caches};
  }
  [[nodiscard]] Plan plan(Direction direction = Direction::write) {
    return make_plan(digest(), direction, terrain(), tuning);
  }
};

}  // namespace shima::test
