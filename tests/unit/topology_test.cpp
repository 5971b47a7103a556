// Nodes, indices and candidates for agents of random placements.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

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

// `block` members at a time to each node in turn, with equal cores; some nodes get fewer.
std::vector<Member> dealt_members(std::mt19937& random) {
  const auto nodes = 1 + random() % 6;
  const auto block = 1 + random() % 5;
  std::vector<Member> members((nodes - 1) * block + 1 + random() % 40);
  const int cores = 1 + static_cast<int>(random() % 4);
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i] = {static_cast<int>(i / block % nodes), cores};
  return members;
}

// Consecutive members on nodes of unequal sizes and cores.
std::vector<Member> consecutive_members(std::mt19937& random) {
  std::vector<Member> members;
  const int nodes = 1 + static_cast<int>(random() % 6);
  for (int node = 0; node < nodes; ++node)
    members.resize(members.size() + 1 + random() % 4, {node, 1 + node % 2});
  return members;
}

// Some in NUMA domains, which are filled one after another or dealt to.
std::vector<Member> members_in_domains(std::mt19937& random) {
  std::vector<Member> members =
      random() % 2 == 0 ? random_members(random) : consecutive_members(random);
  const auto domains = 1 + random() % 4;
  for (std::size_t i = 0; i < members.size(); ++i)
    members[i].numa_domain = static_cast<int>(
        random() % 2 == 0 ? random() % domains : domains - i * domains / members.size());
  return members;
}

// Whether an index on a node is where it has to be: behind those of earlier ranks in the same
// domain, or a domain's first, with no later index in the domain of the one before.
bool follows(const std::vector<Member>& members, const NodeRanks& ranks, std::size_t index) {
  const auto domain_at = [&](std::size_t i) {
    return members[static_cast<std::size_t>(ranks[i])].numa_domain;
  };
  if (index == 0) return true;
  if (domain_at(index) == domain_at(index - 1)) return ranks[index - 1] < ranks[index];
  for (std::size_t later = index; later < ranks.size(); ++later)
    if (domain_at(later) == domain_at(index - 1)) return false;
  return true;
}

void check_answers(const std::vector<Member>& members) {
  const Topology topology(members);
  ASSERT_EQ(topology.size(), static_cast<int>(members.size()));
  int candidates = 0;
  int found = 0;
  for (int node = 0; node < topology.node_count(); ++node) {
    EXPECT_EQ(topology.candidates_before(node), candidates);
    const auto ranks = topology.ranks_on(node);
    ASSERT_GT(ranks.size(), 0U);
    EXPECT_EQ(ranks.front(), ranks[0]);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const bool is_ordered =
          topology.node_count() > 1 ? follows(members, ranks, i) : ranks[i] == static_cast<int>(i);
      EXPECT_TRUE(is_ordered);
      EXPECT_LE(ranks.front(), ranks[i]);
      const Member& member = members[static_cast<std::size_t>(ranks[i])];
      EXPECT_EQ(member.node, node);
      EXPECT_EQ(topology.cores_of(node), member.cores);
      EXPECT_EQ(topology.node_of(ranks[i]), node);
      EXPECT_EQ(topology.index_of(ranks[i]), static_cast<int>(i));
    }
    const int here = std::min(topology.cores_of(node), static_cast<int>(ranks.size()));
    for (int i = 0; i < here; ++i) EXPECT_EQ(topology.node_of_candidate(candidates + i), node);
    candidates += here;
    found += static_cast<int>(ranks.size());
  }
  EXPECT_EQ(found, topology.size());
  EXPECT_EQ(topology.candidates_before(topology.node_count()), candidates);
}

TEST(Topology, AnswersAgreeWithTheMembers) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    check_answers(random_members(random));
    check_answers(dealt_members(random));
    check_answers(consecutive_members(random));
    check_answers(members_in_domains(random));
  }
}

// Whether two topologies give the same answers.
void check_same(const Topology& one, const Topology& other) {
  ASSERT_EQ(one.size(), other.size());
  ASSERT_EQ(one.node_count(), other.node_count());
  for (int rank = 0; rank < one.size(); ++rank) {
    EXPECT_EQ(one.node_of(rank), other.node_of(rank));
    EXPECT_EQ(one.index_of(rank), other.index_of(rank));
  }
  for (int node = 0; node < one.node_count(); ++node) {
    EXPECT_EQ(one.cores_of(node), other.cores_of(node));
    EXPECT_EQ(one.candidates_before(node), other.candidates_before(node));
    const NodeRanks ranks = one.ranks_on(node);
    ASSERT_EQ(ranks.size(), other.ranks_on(node).size());
    for (std::size_t i = 0; i < ranks.size(); ++i) EXPECT_EQ(ranks[i], other.ranks_on(node)[i]);
  }
}

std::vector<Member> any_members(std::mt19937& random) {
  switch (random() % 4) {
    case 0:
      return random_members(random);
    case 1:
      return dealt_members(random);
    case 2:
      return consecutive_members(random);
    default:
      return members_in_domains(random);
  }
}

TEST(Topology, IsTheSameAfterItsWordsWereRead) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Topology topology(any_members(random));
    const auto read = Topology::of_words(topology.words());
    ASSERT_TRUE(read);
    check_same(topology, *read);
  }
}

TEST(Topology, HasFewWordsForAMillionRanks) {
  std::vector<Member> members(1 << 20);
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = {static_cast<int>(i / 128), 64};
  EXPECT_LE(Topology(members).words().size(), 6U);
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = {static_cast<int>(i % 8192), 64};
  EXPECT_LE(Topology(members).words().size(), 6U);
  Topology topology(members);
  topology.set_apart();
  EXPECT_LE(topology.words().size(), 6U);
}

// Whatever the words say, an answer stays within the ranks and the nodes.
TEST(Topology, RefusesDamagedWordsOrStaysWithinThem) {
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<std::int32_t> words = Topology(any_members(random)).words();
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
      words[random() % words.size()] = static_cast<std::int32_t>(random() % 40) - 4;
    if (random() % 8 == 0) words.resize(random() % words.size());
    const auto read = Topology::of_words(words);
    if (!read) continue;
    for (int node = 0; node < read->node_count(); ++node) {
      const NodeRanks ranks = read->ranks_on(node);
      for (std::size_t i = 0; i < ranks.size(); ++i) {
        ASSERT_GE(ranks[i], 0);
        ASSERT_LT(ranks[i], read->size());
        EXPECT_EQ(read->node_of(ranks[i]), node);
        EXPECT_EQ(read->index_of(ranks[i]), static_cast<int>(i));
      }
    }
  }
}

TEST(Topology, SetsTheCoresOfEachNode) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Member> members = any_members(random);
    std::vector<Member> without = members;
    for (Member& member : without) member.cores = 1;
    const Topology expected(members);
    std::vector<int> cores;
    for (int node = 0; node < expected.node_count(); ++node)
      cores.push_back(expected.cores_of(node));
    Topology topology(without);
    Topology reader = topology;
    topology.set_node_cores(cores);
    check_same(expected, topology);
    ASSERT_TRUE(reader.read_rows(expected.row_words()));
    check_same(expected, reader);
    const Topology larger(std::vector<Member>(members.size() + 1));
    ASSERT_FALSE(reader.read_rows(larger.row_words()));
    check_same(expected, reader);
    for (std::size_t i = 0; i < without.size(); ++i) without[i] = {.node = static_cast<int>(i)};
    reader.set_apart();
    check_same(Topology(without), reader);
  }
}

TEST(Topology, KeepsTheRanksOfANumaDomainTogether) {
  std::vector<Member> members(8, {0, 8});
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].node = static_cast<int>(i / 4);
    members[i].numa_domain = static_cast<int>(1 - i % 2);
  }
  const Topology topology(members);
  const auto ranks = topology.ranks_on(1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ranks[i], (std::array{4, 6, 5, 7})[i]);
}

TEST(Topology, SetsTheCoresOfAllNodes) {
  Topology topology(std::vector<Member>{{0, 1}, {0, 1}, {1, 5}, {1, 5}, {1, 5}});
  EXPECT_EQ(topology.candidates_before(2), 4);
  topology.set_cores(2);
  EXPECT_EQ(topology.candidates_before(2), 4);
  EXPECT_EQ(topology.node_of_candidate(1), 0);
  EXPECT_EQ(topology.cores_of(1), 2);
}

}  // namespace
}  // namespace shima
