// Cuts the file into domains and chooses the path of a collective call.
//
// The thresholds were measured (see docs/architecture.md): a pull costs about a microsecond per
// batch and some tens of nanoseconds per piece, so for pieces below a few KiB copying by the
// members themselves is faster.
#include "collective/plan/plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "layout/layout.h"

namespace shima {
namespace {

constexpr std::uint64_t far_window_bytes = std::uint64_t{2} << 20;  // between nodes
// On one node, windows that stay in the caches of its cores. With more members than cores, a window
// costs each member a turn on one, which is most of the time of a read.
constexpr std::uint64_t near_window_bytes = std::uint64_t{512} << 10;
constexpr std::uint64_t crowded_write_window_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t crowded_read_window_bytes = std::uint64_t{2} << 20;
// Of a first call on one node (docs/measurements.md, first touch of a window).
constexpr std::uint64_t least_window_bytes = std::uint64_t{256} << 10;
constexpr std::uint64_t windows_that_pay = 8;
// A window of an I/O node is sent, received and written while it is in the processor's cache.
constexpr std::uint64_t default_io_node_window_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t largest_window_bytes = std::uint64_t{1} << 30;  // one message each
constexpr std::uint64_t pull_piece_bytes = 2048;  // smaller pieces are packed by their owners
// If no agent waits for another's lock, only the cost of copying counts; packing saves the kernel's
// walk through the pages of each piece.
constexpr std::uint64_t pull_piece_bytes_apart = 32 * 1024;
// In one address space: gathering smaller pieces into a window, which stays in the cache, costs
// less than the kernel's work for each piece of a list. If agents wait for each other's lock,
// writing from the cache shortens the time under the lock by more than the gathering takes.
constexpr std::uint64_t single_copy_piece_bytes = 8 * 1024;
constexpr int most_nodes_to_ask_all = 8;  // with more, the number of requests would decide

// The inode locks that agents take: none to read, one each, or one shared by several of them.
enum class Locks : std::uint8_t { none, own, shared };

// Agents of logical ranges all write to every subfile.
Locks locks_of(Direction direction, Strategy strategy, std::size_t agents, std::size_t inodes) {
  if (direction == Direction::read) return Locks::none;
  return agents <= (strategy == Strategy::two_phase ? 1 : inodes) ? Locks::own : Locks::shared;
}

// Members of one node send no messages; a request for that path is ignored there.
std::optional<Path> granted(std::optional<Path> wanted, const Terrain& terrain) {
  const bool refused = wanted == Path::message && !terrain.can_message;
  return refused ? std::nullopt : wanted;
}

// Between nodes, how bytes move on each of them.
NearPath near_path(const Digest& digest, const Terrain& terrain, std::optional<Path> wanted) {
  if (!terrain.can_pull || wanted == Path::pack) return NearPath::pack;
  if (wanted == Path::pull || terrain.one_space) return NearPath::pull;
  const std::uint64_t piece_bytes =
      digest.len_bytes / std::max(digest.file_pieces, digest.memory_pieces);
  return piece_bytes >= pull_piece_bytes ? NearPath::pull : NearPath::pack;
}

// I/O nodes count the requests of all subgroups.
Plan plan_for_io_nodes(Plan plan, const Digest& digest, const Terrain& terrain,
                       const Tuning& tuning) {
  plan.path = Path::message;
  plan.near = near_path(digest, terrain, tuning.path);
  plan.subgroup_members = tuning.subgroup_members;
  plan.requests = RequestsTo::all;
  plan.window_bytes = tuning.window_bytes == 0
                          ? default_io_node_window_bytes
                          : std::min(plan.window_bytes, most_io_node_window_bytes);
  plan.call_id = digest.call_id;
  return plan;
}

Path gathering_path(const Digest& digest, Locks locks, const Terrain& terrain,
                    std::optional<Path> wanted) {
  if (terrain.can_message) return Path::message;
  if (!terrain.can_pack) return Path::pull;  // a member alone
  if (!terrain.can_pull || wanted == Path::pack) return Path::pack;
  if (wanted == Path::pull) return Path::pull;
  const bool may_copy_once = terrain.one_space && !digest.direct;
  if (may_copy_once && wanted == Path::single_copy) return Path::single_copy;
  const std::uint64_t piece_bytes =
      digest.len_bytes / std::max(digest.file_pieces, digest.memory_pieces);
  if (terrain.one_space) {
    const bool once = piece_bytes >= single_copy_piece_bytes && locks != Locks::shared;
    return may_copy_once && once ? Path::single_copy : Path::pull;
  }
  const std::uint64_t least = locks == Locks::own ? pull_piece_bytes_apart : pull_piece_bytes;
  return piece_bytes >= least ? Path::pull : Path::pack;
}

// Between nodes, every agent costs each subgroup a message and each of its members a turn, which
// takes longer than the bytes of a small call. Bytes count with the pages around them.
int agents_that_pay(const Digest& digest, const Topology& topology) {
  constexpr std::uint64_t least_bytes_per_member = std::uint64_t{64} << 10;
  constexpr std::uint64_t enough_bytes = std::uint64_t{4} << 20;
  const int nodes = topology.node_count();
  const auto members = static_cast<std::uint64_t>((topology.size() + nodes - 1) / nodes);
  const std::uint64_t least_bytes = std::min(enough_bytes, least_bytes_per_member * members);
  const auto span_bytes = static_cast<std::uint64_t>(digest.bounds.highest - digest.bounds.lowest);
  const std::uint64_t touched_bytes =
      digest.file_pieces < span_bytes / grid_bytes ? digest.file_pieces * grid_bytes : span_bytes;
  const std::uint64_t agents = std::max(digest.len_bytes, touched_bytes) / least_bytes;
  return static_cast<int>(
      std::clamp<std::uint64_t>(agents, 1, static_cast<std::uint64_t>(topology.size())));
}

AgentMap agents_for(Strategy strategy, const Digest& digest, const Terrain& terrain,
                    const Tuning& tuning, std::uint64_t window_bytes) {
  const FileRange span{{digest.bounds.lowest}, {digest.bounds.highest}};
  AgentLimits limits{.max_agents = tuning.max_agents,
                     .candidates = terrain.caches == Caches::apart ? AgentCandidates::nodes
                                                                   : AgentCandidates::cores,
                     .window_bytes = window_bytes};
  if (strategy == Strategy::io_node) limits.candidates = AgentCandidates::io_nodes;
  if (strategy == Strategy::two_phase) {
    if (terrain.caches != Caches::apart) limits.candidates = AgentCandidates::members;
    return {terrain.topology, terrain.layout, span, limits};
  }
  std::vector<Domain> parts = parts_of(terrain.layout, span);
  // Disks, and the caches of nodes, are used by agents of their own.
  const bool may_be_few = parts.size() == 1 && digest.direct == 0 &&
                          terrain.caches != Caches::apart && terrain.topology.node_count() > 1;
  if (limits.max_agents == 0 && may_be_few)
    limits.max_agents = agents_that_pay(digest, terrain.topology);
  return {terrain.topology, std::move(parts), limits};
}

}  // namespace

std::uint64_t usual_window_bytes(const Topology& topology, Direction direction) {
  if (topology.node_count() > 1) return far_window_bytes;
  if (topology.size() <= agent_candidates(topology)) return near_window_bytes;
  return direction == Direction::write ? crowded_write_window_bytes : crowded_read_window_bytes;
}

// Creating the memory of a window takes longer than the turns that smaller windows cost the
// members, until several windows have been moved through it. As many bytes are expected to follow
// as have been moved. Direct I/O waits for the disk at each window.
std::uint64_t call_window_bytes(const Digest& digest, const Topology& topology,
                                Direction direction) {
  const std::uint64_t most = usual_window_bytes(topology, direction);
  if (topology.node_count() > 1 || digest.direct != 0) return most;
  const auto agents = static_cast<std::uint64_t>(agent_candidates(topology));
  const std::uint64_t paying_bytes =
      (digest.staged_bytes + digest.len_bytes / agents) / windows_that_pay;
  return paying_bytes >= most ? most : std::max(std::bit_ceil(paying_bytes), least_window_bytes);
}

std::uint64_t window_size(std::uint64_t wanted_bytes, std::uint64_t usual_bytes) {
  if (wanted_bytes == 0) return usual_bytes;
  const std::uint64_t len = std::min(wanted_bytes, largest_window_bytes);
  return (len + grid_bytes - 1) / grid_bytes * grid_bytes;
}

Plan make_plan(const Digest& digest, Direction direction, const Terrain& terrain,
               const Tuning& tuning, const History* history) {
  Plan plan;
  plan.choice = choose(digest, direction, terrain, tuning, history);
  if (plan.is_own_io()) return plan;
  const Strategy strategy = plan.choice.strategy;
  plan.window_bytes =
      window_size(tuning.window_bytes, call_window_bytes(digest, terrain.topology, direction));
  plan.direct = digest.direct != 0;
  plan.subgroup_members = strategy == Strategy::subgroup ? tuning.subgroup_members : 1;
  const bool few_nodes = terrain.topology.node_count() <= most_nodes_to_ask_all;
  plan.requests = tuning.requests.value_or(few_nodes ? RequestsTo::all : RequestsTo::touched);
  plan.granule_bytes =
      std::gcd(digest.granule_bytes, std::gcd(grid_bytes, terrain.layout.granule_bytes()));
  const FileRange span{{digest.bounds.lowest}, {digest.bounds.highest}};
  plan.agents = agents_for(strategy, digest, terrain, tuning, plan.window_bytes);
  if (strategy == Strategy::io_node) return plan_for_io_nodes(plan, digest, terrain, tuning);
  const Locks locks = locks_of(direction, strategy, static_cast<std::size_t>(plan.agents.count()),
                               parts_of(terrain.layout, span).size());
  const std::optional<Path> wanted = granted(tuning.path, terrain);
  plan.path = gathering_path(digest, locks, terrain, wanted);
  plan.near = plan.path == Path::pack ? NearPath::pack : near_path(digest, terrain, wanted);
  return plan;
}

}  // namespace shima
