// The chooser: the strategy of a collective call, and the reason for it.
//
// It is one table of reasons (docs/architecture.md shows it). The first row whose condition holds
// decides. A row may name alternatives: one of them is tried if the history of the file allows it,
// and used if it has been clearly cheaper. All inputs are the same on all members, so all make the
// same choice. Pure.
#pragma once

#include <span>
#include <string_view>

#include "base/direction.h"
#include "collective/plan/digest.h"
#include "collective/plan/history.h"
#include "collective/plan/terrain.h"

namespace shima {

// Few bytes are not worth gathering if they are contiguous, or a read through one cache of pieces
// that are close together. In one space less is, since one task can read for all without a further
// copy.
[[nodiscard]] constexpr bool are_few(std::uint64_t len_bytes, std::uint64_t members) {
  return len_bytes <= 16 * 1024 * members;
}
[[nodiscard]] constexpr bool are_close(const Bounds& bounds, std::uint64_t pieces, bool one_space) {
  constexpr std::uint64_t few_pieces = 8;
  const std::int64_t kibibytes = one_space && pieces > few_pieces ? 64 : 1024;
  return bounds.highest - bounds.lowest <= kibibytes * 1024;
}

// The rows of the table, in order.
enum class Reason : std::uint8_t {
  no_data,
  out_of_order,
  atomic_mode,
  refused_hint,
  hint,
  alone,
  caches_apart,
  few_bytes,
  large_blocks,
  cached_read,
  large_pieces,
  one_cache,
  io_nodes,
  between_nodes,
  otherwise,
  // These overrule a row that has alternatives.
  trial,
  history,
};

inline constexpr std::size_t reason_count = static_cast<std::size_t>(Reason::history) + 1;

struct Choice {
  Strategy strategy = Strategy::independent;
  Reason reason = Reason::no_data;
};

[[nodiscard]] Choice choose(const Digest& digest, Direction direction, const Terrain& terrain,
                            const Tuning& tuning, const History* history = nullptr);

struct ReasonRow {
  std::string_view name;
  std::string_view condition;
  std::string_view strategy;
  std::string_view alternatives = "";
};

// The table's texts, in the order of Reason.
[[nodiscard]] std::span<const ReasonRow> reason_rows();

}  // namespace shima
