#include "group/rounds_link.h"

#include <algorithm>
#include <tuple>

#include "base/fault_point.h"
#include "group/outcome_words.h"

namespace shima {

RoundsLink::RoundsLink(const Topology& topology, int node)
    : topology_(topology), node_(node), memory_(std::make_unique<Memory>()) {}

RoundsLink::~RoundsLink() {
  if (lost()) std::ignore = memory_.release();
}

Rendezvous::Maxima RoundsLink::meet(const Rendezvous::Maxima& mine, std::span<std::byte> value,
                                    JoinValues join) noexcept {
  Note& out = memory_->out;
  if (!lost()) {
    out.words = mine;
    std::ranges::copy(value, out.value.begin());
    NodeRounds rounds(node_, topology_.node_count());
    while (const auto round = rounds.next()) {
      fault_point(FaultPhase::arrive);
      const Status done = caught([&] { return go_round(*round, join, value.size()); });
      if (done) continue;
      lost_ = done.error().code;
      break;
    }
  }
  if (lost()) return words_of({.code = lost_, .rank = rank()});
  if (out.words.first == 0)
    std::ranges::copy_n(out.value.begin(), std::ssize(value), value.begin());
  return out.words;
}

Status RoundsLink::go_round(const NodeRound& round, JoinValues join, std::size_t len_bytes) {
  using Kind = NodeRound::Kind;
  auto& [out, in] = *memory_;
  const bool sends = round.kind == Kind::give || round.kind == Kind::swap;
  const int peer = topology_.ranks_on(round.peer).front();
  SHIMA_TRY(swap(peer, sends ? &out : nullptr, round.kind == Kind::give ? nullptr : &in));
  if (round.kind == Kind::give) return {};
  if (round.kind == Kind::adopt) {
    out = in;
    return {};
  }
  out.words = {std::max(out.words.first, in.words.first),
               std::max(out.words.second, in.words.second)};
  if (out.words.first == 0 && join != nullptr)
    join(std::span(out.value).first(len_bytes), std::span(in.value).first(len_bytes));
  return {};
}

}  // namespace shima
