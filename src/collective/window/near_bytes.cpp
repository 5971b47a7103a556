#include "collective/window/near_bytes.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/window/reach_member.h"

namespace shima {

Status NearBytes::start() {
  SHIMA_TRY_ASSIGN(staging(),
                   Staging::borrow(context_.channel.staging(), 2 * context_.plan.window_bytes));
  if (packs()) context_.channel.windows()->show_staging(role_, staging().ref());
  return {};
}

Status NearBytes::begin(int side, int agent, const Window& window,
                        std::span<MemberWalk* const> members) {
  if (packs()) {
    present_.clear();
    std::uint64_t len_bytes = 0;
    for (MemberWalk* member : members) {
      if (!member->has_below(window.range.end)) continue;
      present_.push_back(member->index());
      const std::uint64_t before = member->byte();
      member->skip_below(window.range.end);
      len_bytes += member->byte() - before;
    }
    if (present_.empty()) return {};
    staging().count(len_bytes);
    if (context_.direction == Direction::write) SHIMA_TRY(touch(side, window.range, len_bytes));
    context_.channel.windows()->open(role_, side, {agent, window.domain, window.range}, present_);
    return {};
  }
  staging().count(window.range.len_bytes());
  const ScopedTimer timer(context_.counters.gather_ns);
  for (MemberWalk* member : members) {
    fault_point(FaultPhase::gather);
    SHIMA_TRY(reach_member(context_, *member, window.range.end, reach(),
                           {image(side), window.range.begin}));
  }
  return {};
}

Status NearBytes::move_runs(std::span<const RunBytes> runs, std::span<MemberWalk* const> members) {
  const ScopedTimer timer(context_.counters.gather_ns);
  for (MemberWalk* member : members) {
    fault_point(FaultPhase::gather);
    SHIMA_TRY(reach_member(context_, *member, runs, reach()));
  }
  return {};
}

// Members map what they find here much faster than what each of them has to create. Of a window
// with few bytes most pages are not used.
Status NearBytes::touch(int side, const TargetRange& range, std::uint64_t len_bytes) {
  constexpr std::uint64_t sparse = 8;
  if (len_bytes < range.len_bytes() / sparse) return {};
  const auto offset = static_cast<std::size_t>(image(side) - staging().data());
  return staging().touch({offset, static_cast<std::size_t>(range.len_bytes())});
}

bool NearBytes::is_done(int side) const {
  return !packs() || context_.channel.windows()->finished(role_, side);
}

Status NearBytes::outcome(int side) const {
  if (!packs() || !context_.channel.windows()->spoiled(role_, side)) return {};
  return fail(Code::no_memory, "a collective call: another process failed to copy its bytes");
}

void NearBytes::close() {
  if (packs()) context_.channel.windows()->close(role_);
}

}  // namespace shima
