// The thresholds were measured (docs/measurements.md). To move bytes for others costs meetings and
// a copy; it saves system calls and time of the disk.
#include "collective/plan/chooser.h"

#include <algorithm>
#include <array>

#include "collective/plan/agent_map.h"

namespace shima {
namespace {

// Cached pieces of this size are read by their owners, and smaller ones if a member reads this much
// at most. With more members than cores, an agent is waited for longer. If the gaps are small,
// reading them too costs less than waiting, up to the size where agents have caught up.
constexpr std::uint64_t own_read_piece_bytes = 16 * 1024;
constexpr std::uint64_t own_read_piece_bytes_shared = 8 * 1024;
constexpr std::uint64_t least_own_read_piece_bytes = 2048;  // with small gaps, or other caches
constexpr std::uint64_t own_read_bytes_each = 64 * 1024;
constexpr std::uint64_t own_dense_read_bytes_each = 256 * 1024;
constexpr std::uint64_t own_dense_read_bytes_crowded = 8 * 1024 * 1024;
// Blocks of this size are moved by their owners.
constexpr std::uint64_t own_block_bytes = 256 * 1024;
// But agents read blocks of these sizes faster from a disk if they lie close together.
constexpr std::uint64_t merged_block_bytes = 128 * 1024;
constexpr std::uint64_t merged_block_bytes_in_space = 64 * 1024;
constexpr std::uint64_t most_merged_block_bytes = 256 * 1024;
// Where nodes have one cache, moving bytes between them gains nothing but fewer system calls.
constexpr std::uint64_t own_write_piece_bytes = 8192;
constexpr std::uint64_t own_write_pieces = 16;
constexpr std::uint64_t own_read_pieces = 128 * 1024;
// Members send pieces of this size to agents on other nodes themselves: their master would only
// copy them before.
constexpr std::uint64_t own_sent_piece_bytes = 1024 * 1024;
// With more members than cores, waiting for an agent costs as much as a few calls.
constexpr std::uint64_t own_few_piece_bytes = 16 * 1024;
constexpr std::uint64_t own_few_pieces = 4;
// Agents read many pieces of these sizes of a striped file faster from a disk.
constexpr std::uint64_t striped_piece_bytes = 4 * 1024;
constexpr std::uint64_t most_striped_piece_bytes = 16 * 1024;
constexpr std::uint64_t own_striped_pieces = 256;
// Smaller pieces cost their owners so many calls that a trial would be a waste.
constexpr std::uint64_t own_trial_piece_bytes = 16 * 1024;

struct Inputs {
  const Digest& digest;
  Direction direction;
  const Terrain& terrain;
  const Tuning& tuning;

  [[nodiscard]] std::uint64_t piece_bytes() const { return digest.len_bytes / digest.file_pieces; }
  [[nodiscard]] bool one_piece_each() const { return digest.most_file_pieces <= 1; }
  // Whether Shima chooses how bytes move, so that they need not move at all.
  [[nodiscard]] bool may_stay() const { return !tuning.path; }
};

bool has_one_cache(const Inputs& in) {
  return in.terrain.topology.node_count() == 1 || in.terrain.caches == Caches::one;
}

bool share_cores(const Inputs& in) {
  return in.terrain.topology.size() > agent_candidates(in.terrain.topology);
}

bool are_crowded(const Inputs& in) {
  return in.terrain.topology.size() > 2 * agent_candidates(in.terrain.topology);
}

std::uint64_t own_read_piece(const Inputs& in) {
  if (in.digest.dense != 0 || !has_one_cache(in)) return least_own_read_piece_bytes;
  return share_cores(in) ? own_read_piece_bytes_shared : own_read_piece_bytes;
}

std::uint64_t own_read_bytes(const Inputs& in) {
  if (in.digest.dense == 0) return own_read_bytes_each;
  return are_crowded(in) || !has_one_cache(in) ? own_dense_read_bytes_crowded
                                               : own_dense_read_bytes_each;
}

bool are_few_large_pieces(const Inputs& in) {
  return in.piece_bytes() >= own_few_piece_bytes && in.digest.most_file_pieces <= own_few_pieces &&
         share_cores(in);
}

std::uint64_t own_pieces_of_disk(const Inputs& in) {
  const bool are_pages =
      in.piece_bytes() >= striped_piece_bytes && in.piece_bytes() < most_striped_piece_bytes;
  return are_pages && in.terrain.layout.subfile_count() > 1 ? own_striped_pieces : own_read_pieces;
}

// Direct I/O reads what lies between the pieces from the disk, for each member again.
bool reads_one_cache(const Inputs& in) {
  return in.direction == Direction::read && has_one_cache(in) && in.digest.direct == 0;
}

bool are_merged_blocks(const Inputs& in) {
  const std::uint64_t least =
      in.terrain.one_space ? merged_block_bytes_in_space : merged_block_bytes;
  return in.direction == Direction::read && in.digest.cached == 0 && in.digest.direct == 0 &&
         in.terrain.topology.node_count() == 1 && in.piece_bytes() >= least &&
         in.piece_bytes() <= most_merged_block_bytes &&
         as_unsigned(in.digest.bounds.highest - in.digest.bounds.lowest) <= 2 * in.digest.len_bytes;
}

bool are_close(const Inputs& in) {
  return are_close(in.digest.bounds, in.digest.most_file_pieces, in.terrain.one_space);
}

// Whether some members can form subgroups, which exchange bytes with other nodes.
bool has_subgroups(const Inputs& in) {
  const Topology& topology = in.terrain.topology;
  return in.tuning.subgroup_members != 1 && topology.node_count() > 1 &&
         topology.node_count() < topology.size();
}

bool sends_large_pieces(const Inputs& in) {
  return in.direction == Direction::write && in.piece_bytes() >= own_sent_piece_bytes;
}

// If nodes have caches of their own, no page may be written by two of them. Equal ranges of the
// logical file begin at pages of a subfile only if the stripes do.
bool shares_pages(const Terrain& terrain) {
  return terrain.caches == Caches::apart && terrain.layout.subfile_count() > 1 &&
         terrain.layout.granule_bytes() % grid_bytes != 0;
}

// The windows of a subgroup are in shared memory, which a member alone does not have.
bool can_use_io_nodes(const Inputs& in) { return in.digest.io_nodes != 0 && in.terrain.can_pack; }

bool is_refused(const Inputs& in) {
  return (in.tuning.strategy == Strategy::io_node && !can_use_io_nodes(in)) ||
         (in.tuning.strategy == Strategy::subgroup && !has_subgroups(in)) ||
         (in.tuning.strategy == Strategy::two_phase && shares_pages(in.terrain));
}

Strategy independent(const Inputs&) { return Strategy::independent; }
Strategy wanted(const Inputs& in) { return in.tuning.strategy.value_or(Strategy::disk_directed); }
Strategy gathering(const Inputs& in) {
  if (can_use_io_nodes(in)) return Strategy::io_node;
  return has_subgroups(in) ? Strategy::subgroup : Strategy::disk_directed;
}

// Strategies that may be better than a row's own.
struct Alternatives {
  std::array<Strategy, strategy_count> list{};
  std::size_t count = 0;

  void add(Strategy strategy) { list[count++] = strategy; }
  [[nodiscard]] std::span<const Strategy> all() const { return std::span(list).first(count); }
};

Alternatives none(const Inputs&) { return {}; }

Alternatives only_gathering(const Inputs& in) {
  Alternatives made;
  made.add(gathering(in));
  return made;
}

Alternatives large_pieces_alone(const Inputs& in) {
  Alternatives made;
  if (in.piece_bytes() >= own_trial_piece_bytes) made.add(Strategy::independent);
  return made;
}

Alternatives other_agents_or_none(const Inputs& in) {
  Alternatives made;
  if (has_subgroups(in))
    made.add(sends_large_pieces(in) ? Strategy::subgroup : Strategy::disk_directed);
  if (in.digest.member_count > 1) made.add(Strategy::two_phase);
  if (in.piece_bytes() >= own_trial_piece_bytes) made.add(Strategy::independent);
  return made;
}

struct Row {
  ReasonRow texts;
  bool (*applies)(const Inputs& in);
  Strategy (*strategy)(const Inputs& in);
  Alternatives (*alternatives)(const Inputs& in) = none;
};

constexpr std::array rows{
    Row{{"no_data", "no member has data", "independent"},
        [](const Inputs& in) { return in.digest.len_bytes == 0; },
        independent},
    Row{{"out_of_order", "a member's pieces are not in file order, or overlap", "independent"},
        [](const Inputs& in) { return in.digest.ordered == 0; },
        independent},
    Row{{"atomic_mode", "the file is in atomic mode", "independent"},
        [](const Inputs& in) { return in.tuning.atomic; },
        independent},
    Row{{"refused_hint",
         "a hint names subgroup, and there are no subgroups of two or more; or two_phase, and "
         "nodes with separate caches would share pages; or io_node, and I/O nodes do not own all "
         "subfiles",
         "as `io_nodes`, `between_nodes` or `otherwise`"},
        is_refused,
        gathering},
    Row{{"hint", "`shima_collective`, or `romio_cb_*=disable`", "the hint's"},
        [](const Inputs& in) { return in.tuning.strategy.has_value(); },
        wanted},
    Row{{"alone", "all data are one piece of one member", "independent"},
        [](const Inputs& in) {
          return in.digest.member_count <= 1 && in.digest.file_pieces <= 1 &&
                 (in.may_stay() || in.terrain.caches == Caches::apart);
        },
        independent},
    Row{{"caches_apart", "nodes do not see at once what others write",
         "as `between_nodes` or `otherwise`"},
        [](const Inputs& in) { return in.terrain.caches == Caches::apart; },
        gathering},
    Row{{"few_bytes",
         "16 KiB or less a member; at most one piece each, or a read within 1 MiB through one "
         "cache (in one space, of more than 8 pieces: 64 KiB)",
         "independent"},
        [](const Inputs& in) {
          return in.may_stay() && are_few(in.digest.len_bytes, in.digest.member_count) &&
                 (in.one_piece_each() || (reads_one_cache(in) && are_close(in)));
        },
        independent},
    Row{{"large_blocks",
         "at most one piece a member; of 256 KiB or more, or through one cache; not a read by one "
         "node from the disk of 128 to 256 KiB each, in one space 64 to 256, that lie close "
         "together, unless it is direct",
         "independent", "disk_directed, subgroup or io_node"},
        [](const Inputs& in) {
          return in.may_stay() && in.one_piece_each() && !are_merged_blocks(in) &&
                 (in.piece_bytes() >= own_block_bytes || has_one_cache(in));
        },
        independent,
        only_gathering},
    // In one space, fewer readers that each read more at once are faster: there is no further copy.
    Row{{"cached_read",
         "a read of cached pieces of 16 KiB or more (8 KiB with more members than cores; 2 KiB "
         "with small gaps or several caches), or of 64 KiB or less a member (with small gaps 256 "
         "KiB; 8 MiB with more than two members a core or several caches); not in one space",
         "independent", "disk_directed, subgroup or io_node"},
        [](const Inputs& in) {
          return in.may_stay() && !in.one_piece_each() && in.direction == Direction::read &&
                 in.digest.cached != 0 && !in.terrain.one_space &&
                 (in.piece_bytes() >= own_read_piece(in) ||
                  in.digest.len_bytes <= own_read_bytes(in) * in.digest.member_count);
        },
        independent,
        only_gathering},
    Row{{"large_pieces",
         "a write of pieces of 256 KiB or more, or, by more members than cores, of at most 4 "
         "pieces each of 16 KiB or more; by one node but not in one space",
         "independent", "disk_directed"},
        [](const Inputs& in) {
          return in.may_stay() && in.direction == Direction::write && !in.terrain.one_space &&
                 in.terrain.topology.node_count() == 1 &&
                 (in.piece_bytes() >= own_block_bytes || are_few_large_pieces(in));
        },
        independent,
        only_gathering},
    Row{{"one_cache",
         "several nodes with one cache; writes: pieces of 8 KiB or more, or at most 16 a member; "
         "reads: cached, or at most 128 Ki pieces a member (256 of 4 to 16 KiB in a striped file)",
         "independent", "disk_directed, subgroup or io_node"},
        [](const Inputs& in) {
          const bool few_calls =
              in.direction == Direction::write
                  ? in.piece_bytes() >= own_write_piece_bytes ||
                        in.digest.most_file_pieces <= own_write_pieces
                  : reads_one_cache(in) && (in.digest.cached != 0 ||
                                            in.digest.most_file_pieces <= own_pieces_of_disk(in));
          return in.may_stay() && in.terrain.topology.node_count() > 1 && has_one_cache(in) &&
                 few_calls;
        },
        independent,
        only_gathering},
    Row{{"io_nodes", "I/O nodes own all subfiles", "io_node",
         "pieces of 16 KiB or more: independent"},
        can_use_io_nodes,
        [](const Inputs&) { return Strategy::io_node; },
        large_pieces_alone},
    Row{{"between_nodes",
         "several nodes, with subgroups of two or more; not a write of pieces of 1 MiB or more",
         "subgroup", "disk_directed, two_phase; pieces of 16 KiB or more: independent"},
        [](const Inputs& in) { return has_subgroups(in) && !sends_large_pieces(in); },
        [](const Inputs&) { return Strategy::subgroup; },
        other_agents_or_none},
    Row{{"otherwise", "otherwise", "disk_directed",
         "subgroup, two_phase; pieces of 16 KiB or more: independent"},
        [](const Inputs&) { return true; },
        [](const Inputs&) { return Strategy::disk_directed; },
        other_agents_or_none},
};
static_assert(rows.size() == static_cast<std::size_t>(Reason::trial));

constexpr auto texts = [] {
  std::array<ReasonRow, reason_count> all;
  std::ranges::transform(rows, all.begin(), &Row::texts);
  all[static_cast<std::size_t>(Reason::trial)] = {
      "trial", "the row has an alternative that is not yet measured, and the budget allows it",
      "the alternative"};
  all[static_cast<std::size_t>(Reason::history)] = {
      "history", "an alternative of the row has cost at least 10 % less in calls like this",
      "the alternative"};
  return all;
}();

}  // namespace

Choice choose(const Digest& digest, Direction direction, const Terrain& terrain,
              const Tuning& tuning, const History* history) {
  const Inputs in{digest, direction, terrain, tuning};
  const auto row = std::ranges::find_if(rows, [&](const Row& each) { return each.applies(in); });
  const Strategy usual = row->strategy(in);
  const Choice choice{usual, static_cast<Reason>(row - rows.begin())};
  if (history == nullptr || !in.may_stay()) return choice;
  const Alternatives others = row->alternatives(in);
  const CallClass calls = class_of(digest, direction);
  if (const auto trial = history->trial(calls, digest.len_bytes, usual, others.all()))
    return {*trial, Reason::trial};
  if (const auto cheaper = history->cheaper(calls, usual, others.all()))
    return {*cheaper, Reason::history};
  return choice;
}

std::span<const ReasonRow> reason_rows() { return texts; }

}  // namespace shima
