// Chooses the path of a collective call and cuts the file into domains.
//
// The thresholds were measured (see docs/architecture.md): a pull costs about a microsecond per
// batch and some tens of nanoseconds per piece, so for pieces below a few KiB copying by the
// members themselves is faster; a cached read needs no merging, because nothing is saved by it;
// neither do contiguous blocks.
#include "collective/plan.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "layout/layout.h"

namespace shima {
namespace {

constexpr std::uint64_t default_window_bytes = std::uint64_t{2} << 20;
constexpr std::uint64_t largest_window_bytes = std::uint64_t{1} << 30;  // one message each
// Domains and windows begin at multiples of this. All members must choose the same value, on nodes
// whose pages and blocks differ, so it does not depend on a machine or a file.
constexpr std::uint64_t grid_bytes = 4096;
constexpr std::uint64_t pull_piece_bytes = 2048;  // smaller pieces are packed by their owners
// If no agent waits for another's lock, only the cost of copying counts; packing saves the kernel's
// walk through the pages of each piece.
constexpr std::uint64_t pull_piece_bytes_apart = 32 * 1024;
// In one address space: gathering smaller pieces into a window, which stays in the cache, costs
// less than the kernel's work for each piece of a list. If agents wait for each other's lock,
// writing from the cache shortens the time under the lock by more than the gathering takes.
constexpr std::uint64_t single_copy_piece_bytes = 8 * 1024;
constexpr std::uint64_t own_read_piece_bytes =
    4096;  // cached pieces of this size are read by their owners
constexpr std::uint64_t own_block_bytes =
    256 * 1024;  // contiguous blocks of this size are moved by their owners
constexpr std::uint64_t few_bytes = 16 * 1024;  // per member: not worth gathering

// Sums over all posts.
struct Totals {
  std::uint64_t members = 0;  // with data
  std::uint64_t bytes = 0;
  std::uint64_t file_pieces = 0;
  std::uint64_t memory_pieces = 0;
  std::uint64_t most_file_pieces = 0;  // largest number of one member
  bool ordered = true;
  bool cached = true;
  bool direct = false;
  FileRange span{{std::numeric_limits<std::int64_t>::max()}, {0}};
};

Totals add_up(std::span<const Post> posts) {
  Totals totals;
  for (const Post& post : posts) {
    if (post.len_bytes == 0) continue;
    ++totals.members;
    totals.bytes += post.len_bytes;
    totals.file_pieces += post.file_pieces;
    totals.memory_pieces += post.memory_pieces;
    totals.most_file_pieces = std::max(totals.most_file_pieces, post.file_pieces);
    totals.ordered = totals.ordered && post.ordered;
    totals.cached = totals.cached && post.cached;
    totals.direct = totals.direct || post.direct;
    totals.span.begin = std::min(totals.span.begin, FileOffset{post.bounds.lowest});
    totals.span.end = std::max(totals.span.end, FileOffset{post.bounds.highest});
  }
  return totals;
}

bool owners_do_it_best(const Totals& totals, Direction direction, bool one_space) {
  if (totals.members <= 1 && totals.file_pieces <= 1) return true;
  const std::uint64_t piece_bytes = totals.bytes / totals.file_pieces;
  if (totals.most_file_pieces <= 1)
    return piece_bytes >= own_block_bytes || totals.bytes <= few_bytes * totals.members;
  // Fewer readers that each read more at once are faster, if that costs no further copy.
  if (direction == Direction::read && totals.cached && !one_space)
    return piece_bytes >= own_read_piece_bytes;
  return false;
}

// The inode locks that agents take: none to read, one each, or one shared by several of them.
enum class Locks : std::uint8_t { none, own, shared };

Locks locks_of(Direction direction, std::size_t agents, std::size_t inodes) {
  if (direction == Direction::read) return Locks::none;
  return agents <= inodes ? Locks::own : Locks::shared;
}

// Members of one node send no messages; a request for that path is ignored there.
std::optional<Path> granted(std::optional<Path> wanted, const Terrain& terrain) {
  const bool refused = wanted == Path::message && !terrain.can_message;
  return refused ? std::nullopt : wanted;
}

bool owners_do_it(const Totals& totals, Direction direction, const Terrain& terrain,
                  std::optional<Path> wanted) {
  if (totals.bytes == 0 || !totals.ordered || wanted == Path::independent) return true;
  // With separate caches each page is written by one node, which asks the server once for all of
  // its members.
  if (terrain.caches_apart) return totals.members <= 1 && totals.file_pieces <= 1;
  return !wanted && owners_do_it_best(totals, direction, terrain.one_space);
}

Path gathering_path(const Totals& totals, Locks locks, const Terrain& terrain,
                    std::optional<Path> wanted) {
  if (!terrain.can_pack || wanted == Path::message) return Path::message;
  if (!terrain.can_pull || wanted == Path::pack) return Path::pack;
  if (wanted == Path::pull) return Path::pull;
  const bool may_copy_once = terrain.one_space && !totals.direct;
  if (may_copy_once && wanted == Path::single_copy) return Path::single_copy;
  const std::uint64_t piece_bytes =
      totals.bytes / std::max(totals.file_pieces, totals.memory_pieces);
  if (terrain.one_space) {
    const bool once = piece_bytes >= single_copy_piece_bytes && locks != Locks::shared;
    return may_copy_once && once ? Path::single_copy : Path::pull;
  }
  const std::uint64_t least = locks == Locks::own ? pull_piece_bytes_apart : pull_piece_bytes;
  return piece_bytes >= least ? Path::pull : Path::pack;
}

// Selects `count` elements of `from`, evenly spread.
std::vector<int> spread(const std::vector<int>& from, std::size_t count) {
  if (count >= from.size()) return from;
  std::vector<int> taken;
  for (std::size_t i = 0; i < count; ++i) taken.push_back(from[i * from.size() / count]);
  return taken;
}

// The ranks that act as agents: on each node as many as it has cores and `most_on_node` allows,
// evenly spread over its members.
std::vector<int> pick_agents(std::span<const Member> members, int max_agents,
                             int most_on_node = std::numeric_limits<int>::max()) {
  std::map<int, std::vector<int>> ranks_of_node;
  for (std::size_t i = 0; i < members.size(); ++i)
    ranks_of_node[members[i].node].push_back(static_cast<int>(i));
  std::vector<int> agents;
  for (const auto& [node, ranks] : ranks_of_node) {
    const int cores =
        std::clamp(members[static_cast<std::size_t>(ranks.front())].cores, 1, most_on_node);
    std::ranges::copy(spread(ranks, static_cast<std::size_t>(cores)), std::back_inserter(agents));
  }
  return max_agents > 0 ? spread(agents, static_cast<std::size_t>(max_agents)) : agents;
}

std::uint64_t domain_alignment(const TargetRange& span, int parts, std::uint64_t window_bytes) {
  return span.len_bytes() >= 4 * static_cast<std::uint64_t>(parts) * window_bytes ? window_bytes
                                                                                  : grid_bytes;
}

// Every agent gets whole subfiles if there are enough of them, since each subfile has its own lock;
// otherwise the agents of a subfile get consecutive parts of it.
std::vector<Agent> share_out(const std::vector<Domain>& parts, const std::vector<int>& ranks,
                             std::uint64_t window_bytes) {
  std::vector<Agent> agents;
  const std::size_t at_least = ranks.size() / parts.size();
  const std::size_t one_more = ranks.size() % parts.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts.size() >= ranks.size()) {
      if (i < ranks.size()) agents.push_back({ranks[i], {}});
      agents[i % ranks.size()].domains.push_back(parts[i]);
      continue;
    }
    const int count = static_cast<int>(at_least + (i < one_more ? 1 : 0));
    const std::uint64_t alignment = domain_alignment(parts[i].range, count, window_bytes);
    for (const TargetRange& range : cut_into_domains(parts[i].range, count, alignment))
      agents.push_back({ranks[agents.size()], {{parts[i].subfile, range}}});
  }
  return agents;
}

}  // namespace

std::uint64_t window_size(std::uint64_t wanted_bytes) {
  if (wanted_bytes == 0) return default_window_bytes;
  const std::uint64_t len = std::min(wanted_bytes, largest_window_bytes);
  return (len + grid_bytes - 1) / grid_bytes * grid_bytes;
}

std::uint64_t common_granule(std::span<const Post> posts, std::uint64_t start) {
  std::uint64_t granule = start;
  for (const Post& post : posts) {
    if (post.len_bytes == 0) continue;
    granule = std::gcd(granule, post.file.pattern.granule_bytes());
    // Include the begin of pieces, and the cuts of the slice in its first and its last piece.
    granule = std::gcd(granule, as_unsigned(std::abs(post.file.base + post.file.pattern.lowest())));
    granule = std::gcd(granule, as_unsigned(post.bounds.lowest));
    granule = std::gcd(granule, as_unsigned(post.bounds.highest));
  }
  return granule;
}

int agent_count(std::span<const Member> members) {
  return static_cast<int>(pick_agents(members, 0).size());
}

Plan make_plan(std::span<const Post> posts, Direction direction, const Terrain& terrain,
               const Tuning& tuning) {
  const Totals totals = add_up(posts);
  const std::optional<Path> wanted = granted(tuning.path, terrain);
  if (owners_do_it(totals, direction, terrain, wanted)) return {};
  const std::vector<Domain> parts = parts_of(terrain.layout, totals.span);
  const std::vector<int> ranks = terrain.caches_apart
                                     ? pick_agents(terrain.members, tuning.max_agents, 1)
                                     : pick_agents(terrain.members, tuning.max_agents);
  Plan plan;
  plan.path =
      gathering_path(totals, locks_of(direction, ranks.size(), parts.size()), terrain, wanted);
  plan.window_bytes = window_size(tuning.window_bytes);
  plan.granule_bytes = common_granule(posts, std::gcd(grid_bytes, terrain.layout.granule_bytes()));
  plan.agents = share_out(parts, ranks, plan.window_bytes);
  return plan;
}

}  // namespace shima
