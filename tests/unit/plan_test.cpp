// The plan of a collective call: a pure function of the exchanged posts, valid for any input.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>

#include "collective/plan/asked_agents.h"
#include "situation.h"

namespace shima {
namespace {

using test::interleaved;
using test::members_on;
using test::pick;
using test::post_of;
using test::Random;
using test::Situation;

constexpr std::uint64_t page = 4096;

Situation random_situation(Random& random) {
  Situation made;
  const auto count = static_cast<int>(pick(random, 1, 12));
  const auto nodes = static_cast<int>(pick(random, 1, static_cast<std::uint64_t>(count)));
  made.one_node = nodes == 1;
  made.can_pull = pick(random, 0, 3) != 0;
  made.one_space = made.can_pull && pick(random, 0, 2) == 0;
  if (pick(random, 0, 1) == 0) {
    const auto unit = pick(random, 1, 100) * pick(random, 1, 9000);
    const auto second = static_cast<std::int64_t>(pick(random, 1, 900000));
    made.layout = Layout::make(std::vector<RegionSpec>{
                                   {{0}, unit, static_cast<int>(pick(random, 1, 5))},
                                   {{second}, 4096, static_cast<int>(pick(random, 1, 5))}})
                      .value();
  }
  made.members = members_on(nodes, count, static_cast<int>(pick(random, 1, 8)));
  for (int i = 0; i < count; ++i) {
    const std::uint64_t len = pick(random, 1, 5000);
    made.posts.push_back(pick(random, 0, 4) == 0
                             ? Post{}
                             : post_of(pick(random, 1, 3000), len, len + pick(random, 0, 9000),
                                       pick(random, 0, 1U << 20)));
  }
  made.cached = pick(random, 0, 1) == 0;
  made.direct = pick(random, 0, 20) == 0;
  if (const auto wanted = pick(random, 0, 4); wanted > 0)
    made.tuning.path = static_cast<Path>(wanted - 1);
  if (const auto wanted = pick(random, 0, 7); wanted < 4)
    made.tuning.strategy = static_cast<Strategy>(wanted);
  made.tuning.atomic = pick(random, 0, 20) == 0;
  made.tuning.subgroup_members = static_cast<int>(pick(random, 0, 3));
  if (nodes > 1) made.caches = static_cast<Caches>(pick(random, 0, 2));
  made.tuning.max_agents = static_cast<int>(pick(random, 0, 5));
  made.tuning.window_bytes = pick(random, 0, 1) * pick(random, 1, 3000000);
  return made;
}

FileRange span_of(const std::vector<Post>& posts) {
  FileRange span{{std::numeric_limits<std::int64_t>::max()}, {0}};
  for (const Post& post : posts) {
    if (post.len_bytes == 0) continue;
    span = {{std::min(span.begin.value, post.bounds.lowest)},
            {std::max(span.end.value, post.bounds.highest)}};
  }
  return span;
}

void expect_same(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.choice.strategy, b.choice.strategy);
  EXPECT_EQ(a.choice.reason, b.choice.reason);
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.window_bytes, b.window_bytes);
  EXPECT_EQ(a.granule_bytes, b.granule_bytes);
  ASSERT_EQ(a.agents.count(), b.agents.count());
  for (int i = 0; i < a.agents.count(); ++i) {
    EXPECT_EQ(a.agents.rank_of(i), b.agents.rank_of(i));
    EXPECT_EQ(a.agents.domains_of(i), b.agents.domains_of(i));
  }
}

// Where a domain may end before its subfile's part does: at pages, of the subfile or of the file.
bool may_end_at(const Plan& plan, const Layout& layout, int subfile, TargetOffset end) {
  if (plan.choice.strategy != Strategy::two_phase)
    return end.value % static_cast<std::int64_t>(page) == 0;
  const auto end_in_file = layout.run_at(subfile, end).begin;
  // Or at the begin of a stripe: the agent's range ends elsewhere, in another subfile.
  return end_in_file.value % static_cast<std::int64_t>(page) == 0 ||
         end_in_file != layout.run_at(subfile, {end.value - 1}).begin + 1;
}

// The domains cover the span in every subfile, without gaps or overlaps.
void expect_domains_tile(const Plan& plan, const Layout& layout, FileRange span) {
  std::vector<TargetOffset> at;
  for (int i = 0; i < layout.subfile_count(); ++i) at.push_back(layout.below(i, span.begin));
  for (int agent = 0; agent < plan.agents.count(); ++agent) {
    for (const Domain& domain : plan.agents.domains_of(agent)) {
      TargetOffset& next = at[static_cast<std::size_t>(domain.subfile)];
      EXPECT_EQ(domain.range.begin, next);
      EXPECT_FALSE(domain.range.empty());
      next = domain.range.end;
      EXPECT_TRUE(next == layout.below(domain.subfile, span.end) ||
                  may_end_at(plan, layout, domain.subfile, next))
          << next.value;
    }
  }
  for (int i = 0; i < layout.subfile_count(); ++i)
    EXPECT_EQ(at[static_cast<std::size_t>(i)], layout.below(i, span.end));
}

// Each agent is another member, a node has at most one for each core, and the map's answers about
// agents, ranks and nodes are inverse to each other.
void expect_agents_sane(const Plan& plan, const Situation& situation) {
  std::set<int> seen;
  std::map<int, int> on_node;
  for (int agent = 0; agent < plan.agents.count(); ++agent) {
    const int rank = plan.agents.rank_of(agent);
    ASSERT_GE(rank, 0);
    ASSERT_LT(static_cast<std::size_t>(rank), situation.members.size());
    EXPECT_TRUE(seen.insert(rank).second) << "rank " << rank << " twice";
    const Member& member = situation.members[static_cast<std::size_t>(rank)];
    const bool all = plan.choice.strategy == Strategy::two_phase;
    EXPECT_LE(++on_node[member.node], situation.caches == Caches::apart ? 1
                                      : all                             ? 12
                                                                        : member.cores);
    const AgentRange near = plan.agents.agents_on(member.node);
    EXPECT_TRUE(near.begin <= agent && agent < near.end);
    EXPECT_EQ(plan.agents.agent_at(rank), agent);
  }
  for (int rank = 0; rank < situation.topology.size(); ++rank)
    EXPECT_EQ(plan.agents.agent_at(rank).has_value(), seen.contains(rank)) << rank;
  const auto most = static_cast<std::size_t>(situation.tuning.max_agents);
  EXPECT_TRUE(most == 0 || seen.size() <= most) << seen.size();
}

// The owner of a byte is the agent whose domain contains it.
void expect_owners(const AgentMap& agents) {
  const auto parts = agents.parts();
  for (int agent = 0; agent < agents.count(); ++agent) {
    for (const Domain& domain : agents.domains_of(agent)) {
      const auto part = std::ranges::find(parts, domain.subfile, &Domain::subfile);
      ASSERT_NE(part, parts.end());
      const std::int64_t middle = (domain.range.begin.value + domain.range.end.value) / 2;
      for (const TargetOffset at :
           {domain.range.begin, TargetOffset{middle}, domain.range.end - 1}) {
        const auto owner = agents.owner_of(static_cast<std::size_t>(part - parts.begin()), at);
        EXPECT_EQ(owner.agent, agent) << at.value;
        EXPECT_EQ(owner.end, domain.range.end) << at.value;
      }
    }
  }
}

// Found by a visit to all agents.
std::vector<int> agents_with_bytes(std::span<const NearPost> posts, const Layout& layout,
                                   const AgentMap& agents) {
  std::vector<int> found;
  for (int agent = 0; agent < agents.count(); ++agent) {
    const auto domains = agents.domains_of(agent);
    const auto touches = [&](const Domain& domain) {
      return std::ranges::any_of(posts, [&](const NearPost& near) {
        return near.post.len_bytes > 0 &&
               SubfileCursor(near.post.file, layout, domain).next() < domain.range.end;
      });
    };
    if (std::ranges::any_of(domains, touches)) found.push_back(agent);
  }
  return found;
}

void expect_granule_divides(const Plan& plan, const std::vector<Post>& posts) {
  ASSERT_GT(plan.granule_bytes, 0U);
  EXPECT_EQ(plan.window_bytes % plan.granule_bytes, 0U);
  for (const Post& post : posts) {
    if (post.len_bytes == 0) continue;
    EXPECT_EQ(as_unsigned(post.bounds.lowest) % plan.granule_bytes, 0U);
    EXPECT_EQ(as_unsigned(post.bounds.highest) % plan.granule_bytes, 0U);
    EXPECT_EQ(post.file.pattern.granule_bytes() % plan.granule_bytes, 0U);
  }
}

TEST(Plan, IsSaneForAnyInput) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Situation situation = random_situation(random);
    const Plan plan = situation.plan(pick(random, 0, 1) == 0 ? Direction::write : Direction::read);
    if (plan.is_own_io()) {
      EXPECT_EQ(plan.agents.count(), 0);
      continue;
    }
    EXPECT_GT(plan.window_bytes, 0U);
    EXPECT_EQ(plan.window_bytes % page, 0U);
    expect_domains_tile(plan, situation.layout, span_of(situation.posts));
    expect_agents_sane(plan, situation);
    expect_granule_divides(plan, situation.posts);
    if (HasFailure()) return;
  }
}

TEST(Plan, OwnersAreFoundFromOffsets) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Situation situation = random_situation(random);
    situation.tuning.path = Path::pull;
    situation.tuning.strategy =
        pick(random, 0, 1) == 0 ? Strategy::two_phase : Strategy::disk_directed;
    const Plan plan = situation.plan();
    expect_owners(plan.agents);
    std::vector<NearPost> near;
    for (std::size_t i = 0; i < situation.posts.size(); ++i)
      if (pick(random, 0, 2) == 0) near.push_back({static_cast<int>(i), situation.posts[i]});
    EXPECT_EQ(touched_agents(near, situation.layout, plan.agents),
              agents_with_bytes(near, situation.layout, plan.agents));
    if (HasFailure()) return;
  }
}

TEST(Plan, AsksOnlyTouchedAgentsOfManyNodes) {
  Situation situation{.posts = interleaved(9, 100, 16384), .members = members_on(8, 9, 2)};
  situation.one_node = false;
  EXPECT_EQ(situation.plan().requests, RequestsTo::all);
  situation.tuning.requests = RequestsTo::touched;
  EXPECT_EQ(situation.plan().requests, RequestsTo::touched);
  situation.members = members_on(9, 9, 2);
  situation.tuning.requests = std::nullopt;
  EXPECT_EQ(situation.plan().requests, RequestsTo::touched);
}

// Members join digests in different orders, and some of the posts that they decode.
TEST(Plan, IsTheSameInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Situation situation = random_situation(random);
    const Plan at_home = situation.plan();
    for (Post& post : situation.posts) {
      auto arrived = decode_post(encode_post(post));
      ASSERT_TRUE(arrived.has_value());
      post = *std::move(arrived);
    }
    std::ranges::shuffle(situation.posts, random);
    expect_same(at_home, situation.plan());
    if (HasFailure()) return;
  }
}

TEST(Plan, SmallCallsOfSeveralNodesHaveFewAgents) {
  const auto agents = [](int nodes, int count, std::uint64_t pieces, Strategy strategy) {
    Situation situation{.posts = interleaved(count, pieces, 1024),
                        .members = members_on(nodes, count, 2),
                        .can_pull = true};
    situation.one_node = nodes == 1;
    situation.tuning.strategy = strategy;
    return situation.plan().agents.count();
  };
  EXPECT_EQ(agents(2, 8, 1, Strategy::subgroup), 1);
  EXPECT_EQ(agents(2, 8, 64, Strategy::subgroup), 2);   // 512 KiB, four members on a node
  EXPECT_EQ(agents(2, 8, 128, Strategy::subgroup), 4);  // one for each core
  EXPECT_EQ(agents(2, 8, 64, Strategy::disk_directed), 2);
  EXPECT_EQ(agents(2, 32, 64, Strategy::subgroup), 2);  // 2 MiB, 16 members on a node
  EXPECT_EQ(agents(2, 8, 1, Strategy::two_phase), 8);
  EXPECT_EQ(agents(1, 8, 1, Strategy::disk_directed), 2);
}

// Where each agent has a disk or a cache of its own, or more pages than bytes, all are needed.
TEST(Plan, AgentsAreAsManyAsDisksCachesAndPagesNeed) {
  Situation situation{.posts = interleaved(8, 1, 1024), .members = members_on(2, 8, 2)};
  situation.one_node = false;
  situation.tuning.strategy = Strategy::subgroup;
  EXPECT_EQ(situation.plan().agents.count(), 1);
  situation.direct = true;
  EXPECT_EQ(situation.plan().agents.count(), 4);
  situation.direct = false;
  situation.caches = Caches::apart;
  EXPECT_EQ(situation.plan().agents.count(), 2);
  situation.caches = Caches::coherent;
  situation.layout = Layout::striped(4096, 3);
  EXPECT_EQ(situation.plan().agents.count(), 4);
  situation.layout = Layout::plain();
  for (Post& post : situation.posts) post = post_of(64, 512, 1U << 20, 0);
  EXPECT_EQ(situation.plan().agents.count(), 4);
}

TEST(Plan, WindowsOfANodeStayInItsCaches) {
  const auto usual = [](int nodes, int count, Direction direction) {
    return usual_window_bytes(Topology(test::members_on(nodes, count, 4)), direction) >> 10;
  };
  EXPECT_EQ(usual(1, 4, Direction::write), 512U);
  EXPECT_EQ(usual(1, 4, Direction::read), 512U);
  EXPECT_EQ(usual(1, 5, Direction::write), 1024U);
  EXPECT_EQ(usual(1, 5, Direction::read), 2048U);
  EXPECT_EQ(usual(2, 4, Direction::write), 2048U);
  EXPECT_EQ(window_size(0, 4096), 4096U);
  EXPECT_EQ(window_size(5000, 4096), 8192U);
}

TEST(Plan, WindowsGrowWithWhatHasBeenMoved) {
  const auto usual = [](int nodes, int count, std::uint64_t len_bytes, std::uint64_t staged_bytes) {
    Digest digest;
    digest.len_bytes = len_bytes;
    digest.staged_bytes = staged_bytes;
    const Topology topology(test::members_on(nodes, count, 2));
    return call_window_bytes(digest, topology, Direction::write) >> 10;
  };
  constexpr std::uint64_t mib = 1U << 20;
  EXPECT_EQ(usual(1, 8, 100, 0), 256U);
  EXPECT_EQ(usual(1, 8, 2 * mib, 0), 256U);
  EXPECT_EQ(usual(1, 8, 8 * mib, 0), 512U);  // 4 MiB each of two agents
  EXPECT_EQ(usual(1, 8, 8 * mib, 4 * mib), 1024U);
  EXPECT_EQ(usual(1, 8, 1000 * mib, 0), 1024U);
  EXPECT_EQ(usual(1, 8, 100, 100 * mib), 1024U);
  EXPECT_EQ(usual(1, 2, 100, UINT64_MAX / 2), 512U);
  EXPECT_EQ(usual(2, 8, 100, 0), 2048U);
  Digest direct;
  direct.direct = 1;
  EXPECT_EQ(call_window_bytes(direct, Topology(test::members_on(1, 8, 2)), Direction::read),
            2048U << 10);
}

TEST(Plan, ChoosesThePathBySizeOfPieces) {
  Situation situation{.posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2)};
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.layout = Layout::striped(1U << 20, 2);
  EXPECT_EQ(situation.plan().path, Path::pack);
  EXPECT_EQ(situation.plan(Direction::read).path, Path::pull);
  situation.posts = interleaved(4, 100, 65536);
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.layout = Layout::plain();
  situation.posts = interleaved(4, 10000, 64);
  EXPECT_EQ(situation.plan().path, Path::pack);
}

TEST(Plan, CopiesOnceInOneSpace) {
  Situation situation{
      .posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2), .one_space = true};
  EXPECT_EQ(situation.plan(Direction::read).path, Path::single_copy);
  EXPECT_EQ(situation.plan().path, Path::pull);  // two agents, one inode
  situation.tuning.max_agents = 1;
  EXPECT_EQ(situation.plan().path, Path::single_copy);
  situation.tuning.max_agents = 0;
  situation.layout = Layout::striped(1U << 20, 2);
  EXPECT_EQ(situation.plan().path, Path::single_copy);
  situation.direct = true;  // direct I/O needs aligned memory
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.direct = false;
  situation.posts = interleaved(4, 10000, 64);
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.tuning.path = Path::single_copy;
  EXPECT_EQ(situation.plan().path, Path::single_copy);
  situation.one_space = false;
  EXPECT_NE(situation.plan().path, Path::single_copy);
}

TEST(Plan, WishesAreHonouredWherePossible) {
  Situation situation{.posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2)};
  situation.tuning.path = Path::pack;
  EXPECT_EQ(situation.plan().path, Path::pack);
  situation.tuning.path = Path::message;  // not available on one node
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.tuning.path = Path::pull;
  situation.can_pull = false;
  EXPECT_EQ(situation.plan().path, Path::pack);
  situation.one_node = false;
  EXPECT_EQ(situation.plan().path, Path::message);
}

// Two_phase: agent i owns the i-th range of the file, whatever the subfiles; every byte once.
TEST(AgentMap, EqualRangesOfTheFileAreSharedOut) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Situation situation = random_situation(random);
    const Topology topology(situation.members);
    const std::int64_t begin = as_signed(pick(random, 0, 3000000));
    const FileRange span{{begin}, {begin + as_signed(pick(random, 1, 20000000))}};
    const AgentMap agents(topology, situation.layout, span,
                          {.max_agents = static_cast<int>(pick(random, 0, 9)),
                           .candidates = AgentCandidates::members,
                           .window_bytes = page * pick(random, 1, 40)});
    FileOffset at = span.begin;  // below it, all bytes have owners
    for (int agent = 0; agent < agents.count(); ++agent) {
      std::uint64_t len = 0;
      for (const Domain& domain : agents.domains_of(agent)) {
        EXPECT_EQ(domain.range.begin, situation.layout.below(domain.subfile, at));
        len += domain.range.len_bytes();
      }
      at = at + as_signed(len);
      for (const Domain& domain : agents.domains_of(agent))
        EXPECT_EQ(domain.range.end, situation.layout.below(domain.subfile, at));
      EXPECT_TRUE(at == span.end || at.value % static_cast<std::int64_t>(page) == 0) << at.value;
    }
    EXPECT_EQ(at, span.end);
    if (HasFailure()) return;
  }
}

// Each byte of a small file has one owner; computed byte by byte.
TEST(AgentMap, EveryByteHasOneOwner) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Layout layout =
        Layout::make(std::vector<RegionSpec>{
                         {{0}, pick(random, 1, 3000), static_cast<int>(pick(random, 1, 4))},
                         {{as_signed(pick(random, 1, 30000))}, pick(random, 1, 9000), 3}})
            .value();
    const Topology topology(members_on(2, 7, 2));
    const FileRange span{{as_signed(pick(random, 0, 5000))},
                         {as_signed(pick(random, 5001, 70000))}};
    const AgentMap agents(topology, layout, span,
                          {.candidates = AgentCandidates::members, .window_bytes = page});
    EXPECT_EQ(agents.count(), 7);
    for (FileOffset at = span.begin; at < span.end; at = at + 1) {
      const Extent byte = layout.locate(at, 1);
      int owners = 0;
      for (int agent = 0; agent < agents.count(); ++agent)
        for (const Domain& domain : agents.domains_of(agent))
          owners += domain.subfile == byte.subfile && domain.range.begin <= byte.begin &&
                    byte.begin < domain.range.end;
      ASSERT_EQ(owners, 1) << at.value;
    }
  }
}

}  // namespace
}  // namespace shima
