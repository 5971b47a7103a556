// Nodes, indices and candidates for agents of random placements.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "group/topology.h"

namespace shima {
namespace {

// Nodes numbered in the order of their first members.
std::vector<Member> random_members(std::mt19937& random) {
  std::vector<Member> members(1 + random() % 30);
  const int most_nodes = 1 + static_cast<int>(random() % 8);
  int nodes = 0;
  for (Member& member : members) {
    member.node = static_cast<int>(random() % static_cast<unsigned>(most_nodes));
    member.node = std::min(member.node, nodes);
    nodes = std::max(nodes, member.node + 1);
    member.cores = 1 + member.node % 3;
  }
  return members;
}

TEST(Topology, AnswersAgreeWithTheMembers) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::vector<Member> members = random_members(random);
    const Topology topology(members);
    ASSERT_EQ(topology.size(), static_cast<int>(members.size()));
    int candidates = 0;
    for (int node = 0; node < topology.node_count(); ++node) {
      EXPECT_EQ(topology.candidates_before(node), candidates);
      const auto ranks = topology.ranks_on(node);
      ASSERT_FALSE(ranks.empty());
      EXPECT_TRUE(std::ranges::is_sorted(ranks));
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        EXPECT_EQ(members[static_cast<std::size_t>(ranks[i])].node, node);
        EXPECT_EQ(topology.node_of(ranks[i]), node);
        EXPECT_EQ(topology.index_of(ranks[i]), static_cast<int>(i));
      }
      const int here = std::min(topology.cores_of(node), static_cast<int>(ranks.size()));
      for (int i = 0; i < here; ++i) EXPECT_EQ(topology.node_of_candidate(candidates + i), node);
      candidates += here;
    }
    EXPECT_EQ(topology.candidates_before(topology.node_count()), candidates);
  }
}

}  // namespace
}  // namespace shima
