// The chooser: which row of its table decides, and which strategies cannot run where.
#include <gtest/gtest.h>

#include <set>

#include "situation.h"

namespace shima {
namespace {

using test::interleaved;
using test::members_on;
using test::post_of;
using test::Situation;

constexpr std::uint64_t mebibyte = 1U << 20;

void expect_choice(Situation& situation, Strategy strategy, Reason reason,
                   Direction direction = Direction::write) {
  const Choice found = situation.plan(direction).choice;
  EXPECT_EQ(static_cast<int>(found.strategy), static_cast<int>(strategy));
  EXPECT_EQ(reason_rows()[static_cast<std::size_t>(found.reason)].name,
            reason_rows()[static_cast<std::size_t>(reason)].name);
}

Situation on_one_node() {
  return {.posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2)};
}

Situation on_two_nodes() {
  return {.posts = interleaved(4, 100, 16384), .members = members_on(2, 4, 2), .one_node = false};
}

TEST(Chooser, RowsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ReasonRow& row : reason_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.condition.empty() || row.strategy.empty()) << row.name;
  }
}

TEST(Chooser, GathersInterleavedPieces) {
  Situation one = on_one_node();
  expect_choice(one, Strategy::disk_directed, Reason::otherwise);
  Situation two = on_two_nodes();
  expect_choice(two, Strategy::subgroup, Reason::between_nodes);
  two.tuning.subgroup_members = 1;
  expect_choice(two, Strategy::disk_directed, Reason::otherwise);
  two.tuning.subgroup_members = 0;
  two.members = members_on(4, 4, 2);  // no two members to group
  expect_choice(two, Strategy::disk_directed, Reason::otherwise);
}

TEST(Chooser, OwnersMoveWhatGainsNothing) {
  Situation situation = on_one_node();
  situation.posts = {Post{}, Post{}};
  expect_choice(situation, Strategy::independent, Reason::no_data);
  situation.posts = {post_of(1, mebibyte, 0, 0), post_of(1, mebibyte, 0, mebibyte)};
  expect_choice(situation, Strategy::independent, Reason::large_blocks);
  situation.posts = {post_of(1, 100000, 0, 0), post_of(1, 100000, 0, 100000)};
  expect_choice(situation, Strategy::independent, Reason::large_blocks);
  situation.posts = interleaved(4, 1, 128 * 1024);
  expect_choice(situation, Strategy::independent, Reason::large_blocks);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.cached = true;
  expect_choice(situation, Strategy::independent, Reason::large_blocks, Direction::read);
  situation.cached = false;
  situation.posts = interleaved(4, 1, 128 * 1024);
  situation.direct = true;
  expect_choice(situation, Strategy::independent, Reason::large_blocks, Direction::read);
  situation.direct = false;
  situation.posts[3] = post_of(1, 128 * 1024, 0, 8 * mebibyte);  // far from the others
  expect_choice(situation, Strategy::independent, Reason::large_blocks, Direction::read);
  situation.posts = interleaved(4, 1, 256 * 1024 + 1);
  expect_choice(situation, Strategy::independent, Reason::large_blocks, Direction::read);
  situation.posts = interleaved(4, 1, 64 * 1024);
  expect_choice(situation, Strategy::independent, Reason::large_blocks, Direction::read);
  situation.one_space = true;
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.one_space = false;
  situation.posts = interleaved(4, 4, mebibyte);
  expect_choice(situation, Strategy::independent, Reason::large_pieces);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(4, 4, 16384);  // two members a core
  expect_choice(situation, Strategy::independent, Reason::large_pieces);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.members = members_on(1, 4, 4);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  situation.members = members_on(1, 4, 2);
  situation.posts = interleaved(4, 5, 16384);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  situation.posts = interleaved(4, 4, 16000);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  situation.posts = interleaved(4, 100, 64);
  expect_choice(situation, Strategy::independent, Reason::few_bytes, Direction::read);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  situation.posts = {post_of(1, 1000, 0, 0), post_of(1, 1000, 0, 1000)};
  expect_choice(situation, Strategy::independent, Reason::few_bytes);
  situation.tuning.path = Path::pull;  // the user wants bytes to move
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  situation.tuning.path = {};
  situation.posts = {post_of(1, 100000, 0, 0), Post{}};
  expect_choice(situation, Strategy::independent, Reason::alone);
}

TEST(Chooser, LargePiecesAreSentByTheirOwners) {
  Situation situation = on_two_nodes();
  situation.posts = interleaved(4, 8, 1U << 20);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise);
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes, Direction::read);
  situation.posts = interleaved(4, 8, (1U << 20) - 1);
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes);
}

TEST(Chooser, OneCacheNeedsNoMessages) {
  Situation situation = on_two_nodes();
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes, Direction::read);
  situation.caches = Caches::one;
  expect_choice(situation, Strategy::independent, Reason::one_cache);
  expect_choice(situation, Strategy::independent, Reason::one_cache, Direction::read);
  situation.posts = interleaved(4, 200, 8192);
  expect_choice(situation, Strategy::independent, Reason::one_cache);
  situation.posts = interleaved(4, 200, 8000);  // too many calls of a write
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes);
  expect_choice(situation, Strategy::independent, Reason::one_cache, Direction::read);
  situation.layout = Layout::striped(1U << 20, 2);
  expect_choice(situation, Strategy::independent, Reason::one_cache, Direction::read);
  situation.posts = interleaved(4, 300, 8000);
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes, Direction::read);
  situation.layout = Layout::plain();
  situation.posts = interleaved(4, 16, 2048);
  expect_choice(situation, Strategy::independent, Reason::one_cache);
  situation.posts = interleaved(4, 200, 1024);
  expect_choice(situation, Strategy::independent, Reason::one_cache, Direction::read);
  situation.posts = {post_of(1, 100000, 0, 0), post_of(1, 100000, 0, 100000)};
  expect_choice(situation, Strategy::independent, Reason::large_blocks);
  situation.caches = Caches::coherent;
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes);
}

TEST(Chooser, CachedPiecesAreReadByTheirOwners) {
  Situation situation = on_one_node();
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.cached = true;
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::write);
  situation.posts = interleaved(4, 500, 8192);  // two members a core
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.members = members_on(1, 4, 4);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.members = members_on(1, 4, 2);
  situation.posts = interleaved(4, 500, 8000);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(2, 5000, 2048);  // with gaps of as many bytes
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.posts = interleaved(4, 1000, 64);
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.posts = interleaved(4, 5000, 64);
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(3, 4000, 64);  // close enough to read what lies between them
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.posts = interleaved(3, 5000, 64);  // agents merge this many faster
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.members = members_on(1, 4, 1);  // four members a core
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.members = members_on(1, 4, 2);
  situation.posts = interleaved(3, 4000, 64);
  situation.posts.push_back(post_of(4000, 64, 4 * 64, 0));
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(4, 100, 16384);
  situation.posts.emplace_back();  // a member without data changes nothing
  situation.members = members_on(1, 5, 2);
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.one_space = true;  // gathering needs no further copy
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(8, 9, 910);
  situation.members = members_on(1, 8, 2);
  expect_choice(situation, Strategy::independent, Reason::few_bytes, Direction::read);
  situation.posts = interleaved(8, 9, 911);  // more than 64 KiB
  expect_choice(situation, Strategy::disk_directed, Reason::otherwise, Direction::read);
  situation.posts = interleaved(8, 8, 2048);
  expect_choice(situation, Strategy::independent, Reason::few_bytes, Direction::read);
}

TEST(Chooser, NodesWithCachesOfTheirOwnReadWhatTheyHave) {
  Situation situation = on_two_nodes();
  situation.cached = true;
  situation.posts = interleaved(4, 500, 2048);
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
  situation.posts = interleaved(4, 500, 2000);
  expect_choice(situation, Strategy::subgroup, Reason::between_nodes, Direction::read);
  situation.posts = interleaved(2, 5000, 512);  // with small gaps
  expect_choice(situation, Strategy::independent, Reason::cached_read, Direction::read);
}

TEST(Chooser, HintsOverruleTheChoice) {
  for (const Strategy wanted :
       {Strategy::disk_directed, Strategy::two_phase, Strategy::subgroup, Strategy::independent}) {
    Situation two = on_two_nodes();
    two.tuning.strategy = wanted;
    expect_choice(two, wanted, Reason::hint);
    two.posts = {Post{}, Post{}};
    expect_choice(two, Strategy::independent, Reason::no_data);
  }
}

TEST(Chooser, RefusesWhatCannotRun) {
  Situation one = on_one_node();
  one.tuning.strategy = Strategy::subgroup;
  expect_choice(one, Strategy::disk_directed, Reason::refused_hint);
  Situation two = on_two_nodes();
  two.tuning.strategy = Strategy::subgroup;
  two.tuning.subgroup_members = 1;
  expect_choice(two, Strategy::disk_directed, Reason::refused_hint);
  two.tuning = {.strategy = Strategy::two_phase};
  two.layout = Layout::striped(1000, 2);
  expect_choice(two, Strategy::two_phase, Reason::hint);
  two.caches = Caches::apart;  // two nodes would write parts of one page
  expect_choice(two, Strategy::subgroup, Reason::refused_hint);
  two.layout = Layout::striped(mebibyte, 2);
  expect_choice(two, Strategy::two_phase, Reason::hint);
}

TEST(Chooser, RulesStandAboveHints) {
  for (const auto wanted : {std::optional<Strategy>(), std::optional(Strategy::two_phase)}) {
    Situation situation = on_two_nodes();
    situation.tuning.strategy = wanted;
    situation.tuning.path = Path::message;
    situation.posts[1].ordered = false;
    expect_choice(situation, Strategy::independent, Reason::out_of_order);
    situation.posts[1].ordered = true;
    situation.tuning.atomic = true;
    expect_choice(situation, Strategy::independent, Reason::atomic_mode);
  }
}

TEST(Chooser, SeparateCachesNeedAgents) {
  Situation situation = on_two_nodes();
  situation.caches = Caches::apart;
  situation.posts = {post_of(1, mebibyte, 0, 0), post_of(1, mebibyte, 0, mebibyte)};
  expect_choice(situation, Strategy::subgroup, Reason::caches_apart);
  EXPECT_EQ(situation.plan().agents.count(), 2);  // one a node
  situation.tuning.strategy = Strategy::two_phase;
  expect_choice(situation, Strategy::two_phase, Reason::hint);
  EXPECT_EQ(situation.plan().agents.count(), 2);
  situation.tuning.strategy = {};
  situation.posts = {post_of(1, mebibyte, 0, 0), Post{}};
  expect_choice(situation, Strategy::independent, Reason::alone);
}

TEST(Chooser, IoNodesAreTheAgentsOfTheirSubfiles) {
  Situation two = on_two_nodes();
  two.members = members_on(2, 8, 2);
  two.layout = Layout::striped(4096, 3);
  two.posts = interleaved(8, 100, 1024);
  two.io_nodes = {5};
  expect_choice(two, Strategy::io_node, Reason::io_nodes);
  const Plan plan = two.plan();
  EXPECT_EQ(plan.path, Path::message);
  EXPECT_EQ(plan.subgroup_members, 0);
  EXPECT_EQ(plan.call_id, 7U);  // the largest of the members' numbers
  ASSERT_EQ(plan.agents.count(), 3);
  for (int agent = 0; agent < 3; ++agent) {
    ASSERT_EQ(plan.agents.domains_of(agent).size(), 1U);
    EXPECT_EQ(plan.agents.domains_of(agent).front().subfile, agent);
  }
  for (int rank = 0; rank < 8; ++rank) EXPECT_FALSE(plan.agents.agent_at(rank).has_value());
  two.tuning.window_bytes = std::uint64_t{64} << 20;
  EXPECT_EQ(two.plan().window_bytes, most_io_node_window_bytes);
  two.tuning.strategy = Strategy::subgroup;
  expect_choice(two, Strategy::subgroup, Reason::hint);
}

// A member has the subfiles as directories, or reaches them through another node.
TEST(Chooser, MembersMustReachTheSameIoNodes) {
  Situation two = on_two_nodes();
  for (const std::vector<std::uint64_t>& each :
       {std::vector<std::uint64_t>{5, 6}, {0, 5}, {5, 0}}) {
    two.io_nodes = each;
    two.tuning.strategy = {};
    EXPECT_EQ(two.plan().choice.reason, Reason::between_nodes);
    two.tuning.strategy = Strategy::io_node;
    expect_choice(two, Strategy::subgroup, Reason::refused_hint);
  }
}

TEST(Chooser, EachStrategyHasAPlanOfItsOwn) {
  Situation two = on_two_nodes();
  two.members = members_on(2, 8, 2);
  two.layout = Layout::striped(mebibyte, 2);
  two.tuning.strategy = Strategy::disk_directed;
  const Plan disk_directed = two.plan();
  EXPECT_EQ(disk_directed.agents.count(), 4);
  EXPECT_EQ(disk_directed.agents.domains_of(0).size(), 1U);
  EXPECT_EQ(disk_directed.subgroup_members, 1);
  two.tuning.strategy = Strategy::subgroup;
  EXPECT_EQ(two.plan().agents.count(), 4);
  EXPECT_EQ(two.plan().subgroup_members, 0);
  two.tuning.strategy = Strategy::two_phase;
  const Plan two_phase = two.plan();
  EXPECT_EQ(two_phase.agents.count(), 8);  // all members
  EXPECT_EQ(two_phase.subgroup_members, 1);
  two.tuning.max_agents = 2;
  EXPECT_EQ(two.plan().agents.count(), 2);
  EXPECT_EQ(two.plan().agents.domains_of(0).size(), 2U);  // a part of both subfiles
}

}  // namespace
}  // namespace shima
