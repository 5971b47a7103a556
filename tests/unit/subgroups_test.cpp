// Subgroups cover each node, and their masters are members of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "collective/plan/subgroups.h"

namespace shima {
namespace {

void check_groups(const Topology& topology, int most_members) {
  const Subgroups subgroups(topology, most_members);
  for (int node = 0; node < topology.node_count(); ++node) {
    const auto ranks = topology.ranks_on(node);
    int next = 0;
    for (int turn = 0; turn < subgroups.count_on(node); ++turn) {
      const Subgroup subgroup = subgroups.at(node, turn);
      EXPECT_EQ(subgroup.begin, next);
      next = subgroup.end;
      ASSERT_GT(subgroup.size(), 0);
      EXPECT_TRUE(most_members == 0 || subgroup.size() <= most_members);
      std::set<int> masters;
      for (int agent = 0; agent < 20; ++agent)
        masters.insert(subgroups.master_for(subgroup, agent));
      EXPECT_EQ(static_cast<int>(masters.size()), subgroups.master_count(subgroup));
      for (int index = subgroup.begin; index < subgroup.end; ++index) {
        const int rank = ranks[static_cast<std::size_t>(index)];
        EXPECT_EQ(subgroups.of(rank).begin, subgroup.begin);
        EXPECT_EQ(subgroups.is_master(rank), masters.contains(rank));
      }
    }
    EXPECT_EQ(next, static_cast<int>(ranks.size()));
  }
}

TEST(Subgroups, CoverTheNodes) {
  for (int members = 1; members < 20; ++members)
    for (int nodes = 1; nodes <= std::min(members, 4); ++nodes)
      for (int most = 0; most < 8; ++most) {
        SCOPED_TRACE(std::to_string(members) + " members, " + std::to_string(nodes) + " nodes, " +
                     std::to_string(most));
        std::vector<Member> placed;
        for (int i = 0; i < members; ++i) placed.push_back({i % nodes, 1 + i % nodes});
        check_groups(Topology(placed), most);
      }
}

}  // namespace
}  // namespace shima
