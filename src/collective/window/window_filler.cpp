#include "collective/window/window_filler.h"

#include "base/clock.h"
#include "base/fault_point.h"

namespace shima {

WindowFiller::WindowFiller(PathContext& context, WindowServer server, std::optional<int> agent)
    : context_(&context), server_(server), agent_(agent) {
  done_ = agent_ && walk_of(*agent_).has_ended();
}

bool WindowFiller::step() {
  if (done_) return false;
  SharedWindows& windows = *context_->channel.windows();
  const bool was_closed = windows.closed(server_);
  bool busy = false;
  for (int side = 0; side < 2; ++side) {
    std::uint32_t& seen = seen_[static_cast<std::size_t>(side)];
    const auto window = windows.look(server_, side, seen);
    if (!window) continue;
    MemberWalk& walk = walk_of(window->bytes.agent).in(window->bytes.domain);
    const TargetRange& range = window->bytes.range;
    const bool has_bytes = walk.has_below(range.end);
    if (has_bytes && walk.next() < range.begin) continue;  // the other side comes first
    seen = window->serial;
    if (!has_bytes) continue;
    busy = true;
    if (status_) status_ = copy(*window, walk);
    if (!status_) walk.skip_below(range.end);
    windows.finish(*window, status_.has_value());
  }
  const bool knows_end = busy && agent_ && walk_of(*agent_).has_ended();
  done_ = knows_end || (was_closed && !busy);
  return busy;
}

AgentWalk& WindowFiller::walk_of(int agent) {
  const auto known = walks_.find(agent);
  if (known != walks_.end()) return known->second;
  return walks_
      .emplace(agent, AgentWalk(context_->channel.near_index(), context_->mine,
                                context_->file.layout(), context_->plan.agents.domains_of(agent)))
      .first->second;
}

Status WindowFiller::copy(const OpenWindow& window, MemberWalk& walk) {
  const ScopedTimer timer(context_->counters.gather_ns);
  fault_point(FaultPhase::gather);
  const BufferPart part{static_cast<std::size_t>(window.side) * context_->plan.window_bytes,
                        static_cast<std::size_t>(window.bytes.range.len_bytes())};
  SHIMA_TRY_ASSIGN(const std::span<std::byte> memory,
                   context_->channel.windows()->memory(server_, part));
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory.data()) + part.offset -
                               static_cast<std::uintptr_t>(window.bytes.range.begin.value);
  return walk.walk_below(window.bytes.range.end, [&](const StripPair& pair) -> Status {
    if (context_->direction == Direction::write) {
      copy_strips(start, 0, pair);
    } else {
      copy_strips(0, start, swapped(pair));
    }
    return {};
  });
}

}  // namespace shima
