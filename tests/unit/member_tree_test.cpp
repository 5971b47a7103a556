// The tree of a first meeting: all hear of all, each word tells of the ranks that the tree says,
// and partners agree on whom they exchange something with.
#include "group/member_tree.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace shima {
namespace {

using Known = std::vector<std::set<int>>;  // of each member: those of which it has heard

bool are_partners(int size, int level, int rank) {
  const Partners partners = MemberTree(rank, size).up(level);
  const bool sends = partners.to != Partners::none;
  const bool hears = partners.from != Partners::none;
  if (sends && hears) return false;
  if (sends) return MemberTree(partners.to, size).up(level).from == rank;
  return !hears || MemberTree(partners.from, size).up(level).to == rank;
}

Known after_up(int size) {
  Known known(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) known[static_cast<std::size_t>(rank)] = {rank};
  for (int level = 0; level < MemberTree(0, size).levels(); ++level)
    for (int rank = 0; rank < size; ++rank) {
      const MemberTree tree(rank, size);
      const int child = tree.up(level).from;
      if (child == Partners::none) continue;
      const auto& told = known[static_cast<std::size_t>(child)];
      std::vector<int> subtree(static_cast<std::size_t>(tree.subtree(child, level)));
      std::iota(subtree.begin(), subtree.end(), child);
      EXPECT_EQ(told, std::set<int>(subtree.begin(), subtree.end()))
          << size << " members, level " << level << ", member " << child;
      known[static_cast<std::size_t>(rank)].insert(told.begin(), told.end());
    }
  return known;
}

TEST(MemberTree, PartnersAgree) {
  for (int size = 1; size <= 70; ++size)
    for (int level = 0; level < MemberTree(0, size).levels(); ++level)
      for (int rank = 0; rank < size; ++rank)
        EXPECT_TRUE(are_partners(size, level, rank)) << size << ", " << level << ", " << rank;
}

TEST(MemberTree, AllHearOfAll) {
  for (int size = 1; size <= 70; ++size) {
    Known known = after_up(size);
    EXPECT_EQ(known[0].size(), static_cast<std::size_t>(size));
    for (int level = MemberTree(0, size).levels(); level-- > 0;)
      for (int rank = 0; rank < size; ++rank) {
        const int parent = MemberTree(rank, size).down(level).from;
        if (parent != Partners::none)
          known[static_cast<std::size_t>(rank)] = known[static_cast<std::size_t>(parent)];
      }
    for (const auto& heard : known) EXPECT_EQ(heard.size(), static_cast<std::size_t>(size));
  }
}

TEST(MemberTree, FewPairsCrossBetweenBlocks) {
  std::set<std::pair<int, int>> crossing;
  for (int level = 0; level < MemberTree(0, 32).levels(); ++level)
    for (int rank = 0; rank < 32; ++rank)
      if (const int to = MemberTree(rank, 32).up(level).to;
          to != Partners::none && to / 16 != rank / 16)
        crossing.emplace(rank, to);
  EXPECT_EQ(crossing, (std::set<std::pair<int, int>>{{16, 0}}));
}

}  // namespace
}  // namespace shima
