// The plan of a collective call: a pure function of the exchanged posts, valid for any input.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>

#include "collective/plan/plan.h"

namespace shima {
namespace {

using Random = std::mt19937_64;
constexpr std::uint64_t page = 4096;

std::uint64_t pick(Random& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

// `count` pieces of `len` bytes, `stride` apart, from `base`; memory is one block.
Post post_of(std::uint64_t count, std::uint64_t len, std::uint64_t stride, std::uint64_t base) {
  const std::uint64_t bytes = count * len;
  if (bytes == 0) return {};
  const Slice file{Pattern::strided(count, as_signed(stride), Pattern::contiguous(len)),
                   as_signed(base), 0, bytes};
  return make_post(file, {Pattern::contiguous(bytes), 0, 0, bytes});
}

// The interleaved pieces of all members.
std::vector<Post> interleaved(std::uint64_t members, std::uint64_t count, std::uint64_t len) {
  std::vector<Post> posts;
  for (std::uint64_t i = 0; i < members; ++i)
    posts.push_back(post_of(count, len, members * len, i * len));
  return posts;
}

std::vector<Member> members_on(int nodes, int count, int cores) {
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

  [[nodiscard]] Digest digest() const {
    Digest all;
    for (const Post& post : posts) {
      Digest one = digest_of(post);
      if (cached) one.cached = 1;
      if (direct) one.direct = 1;
      all = join(all, one);
    }
    return all;
  }
  [[nodiscard]] Plan plan(Direction direction = Direction::write) {
    topology = Topology(members);
    return make_plan(digest(), direction,
                     {.topology = topology,
                      .layout = layout,
                      .can_pull = can_pull,
                      .one_space = one_space,
                      .can_pack = true,
                      .can_message = !one_node},
                     tuning);
  }
};

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
  if (const auto wanted = pick(random, 0, 5); wanted > 0)
    made.tuning.path = static_cast<Path>(wanted - 1);
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
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.window_bytes, b.window_bytes);
  EXPECT_EQ(a.granule_bytes, b.granule_bytes);
  ASSERT_EQ(a.agents.count(), b.agents.count());
  for (int i = 0; i < a.agents.count(); ++i) {
    EXPECT_EQ(a.agents.rank_of(i), b.agents.rank_of(i));
    EXPECT_EQ(a.agents.domains_of(i), b.agents.domains_of(i));
  }
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
                  next.value % static_cast<std::int64_t>(page) == 0)
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
    EXPECT_LE(++on_node[member.node], member.cores);
    const AgentRange near = plan.agents.agents_on(member.node);
    EXPECT_TRUE(near.begin <= agent && agent < near.end);
    EXPECT_EQ(plan.agents.agent_at(rank), agent);
  }
  for (int rank = 0; rank < situation.topology.size(); ++rank)
    EXPECT_EQ(plan.agents.agent_at(rank).has_value(), seen.contains(rank)) << rank;
  const auto most = static_cast<std::size_t>(situation.tuning.max_agents);
  EXPECT_TRUE(most == 0 || seen.size() <= most) << seen.size();
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
    if (plan.path == Path::independent) {
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
  situation.posts = {post_of(1, 1U << 20, 0, 0), post_of(1, 1U << 20, 0, 1U << 20)};
  EXPECT_EQ(situation.plan().path, Path::independent);
  situation.posts = {Post{}, Post{}};
  EXPECT_EQ(situation.plan().path, Path::independent);
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

TEST(Plan, CachedPiecesAreReadByTheirOwners) {
  Situation situation{.posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2)};
  EXPECT_EQ(situation.plan(Direction::read).path, Path::pull);
  situation.cached = true;
  EXPECT_EQ(situation.plan(Direction::read).path, Path::independent);
  situation.posts.emplace_back();  // a member without data changes nothing
  situation.members = members_on(1, 5, 2);
  EXPECT_EQ(situation.plan(Direction::read).path, Path::independent);
  situation.cached = false;  // must wait for the disk
  EXPECT_EQ(situation.plan(Direction::read).path, Path::pull);
}

TEST(Plan, WishesAreHonouredWherePossible) {
  Situation situation{.posts = interleaved(4, 100, 16384), .members = members_on(1, 4, 2)};
  situation.tuning.path = Path::pack;
  EXPECT_EQ(situation.plan().path, Path::pack);
  situation.tuning.path = Path::independent;
  EXPECT_EQ(situation.plan().path, Path::independent);
  situation.tuning.path = Path::message;  // not available on one node
  EXPECT_EQ(situation.plan().path, Path::pull);
  situation.tuning.path = Path::pull;
  situation.can_pull = false;
  EXPECT_EQ(situation.plan().path, Path::pack);
  situation.one_node = false;
  EXPECT_EQ(situation.plan().path, Path::message);
}

TEST(Plan, UnorderedAccessesAreNotGathered) {
  Situation situation{.posts = interleaved(2, 100, 16384), .members = members_on(1, 2, 2)};
  situation.tuning.path = Path::pull;
  situation.posts[1].ordered = false;
  EXPECT_EQ(situation.plan().path, Path::independent);
}

}  // namespace
}  // namespace shima
