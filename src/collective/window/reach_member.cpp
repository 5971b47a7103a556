#include "collective/window/reach_member.h"

namespace shima {
namespace {

Status copy_directly(MemberWalk& member, TargetOffset end, Direction direction,
                     std::uintptr_t window) {
  return member.walk_below(end, [&](const StripPair& pair) -> Status {
    if (direction == Direction::read) {
      copy_strips(window, 0, pair);
    } else {
      copy_strips(0, window, swapped(pair));
    }
    return {};
  });
}

Status add_pieces(RemoteTransfer& transfer, const StripPair& pair, std::uintptr_t window) {
  std::uintptr_t here = window + static_cast<std::uintptr_t>(pair.a_offset);
  auto there = static_cast<std::uintptr_t>(pair.b_offset);
  for (std::uint64_t i = 0; i < pair.count; ++i) {
    SHIMA_TRY(transfer.add(here, there, pair.len_bytes));
    here += static_cast<std::uintptr_t>(pair.a_stride_bytes);
    there += static_cast<std::uintptr_t>(pair.b_stride_bytes);
  }
  return {};
}

bool is_copied_directly(const PathContext& context, const MemberWalk& member) {
  return member.index() == context.channel.near_index() || context.channel.one_space();
}

Status add_below(RemoteTransfer& transfer, MemberWalk& member, TargetOffset end,
                 std::uintptr_t window) {
  return member.walk_below(
      end, [&](const StripPair& pair) { return add_pieces(transfer, pair, window); });
}

}  // namespace

Status reach_member(const PathContext& context, MemberWalk& member, TargetOffset end,
                    Direction direction, const WindowMemory& window) {
  if (is_copied_directly(context, member))
    return copy_directly(member, end, direction, window.base());
  RemoteTransfer transfer(context.channel.near_pid(member.index()), direction);
  SHIMA_TRY(add_below(transfer, member, end, window.base()));
  return transfer.flush();
}

Status reach_member(const PathContext& context, MemberWalk& member, std::span<const RunBytes> runs,
                    Direction direction) {
  const bool directly = is_copied_directly(context, member);
  RemoteTransfer transfer(context.channel.near_pid(member.index()), direction);
  for (const RunBytes& run : runs) {
    const std::uintptr_t window = WindowMemory::of(run).base();
    if (!member.has_below(run.range.end)) continue;
    SHIMA_TRY(directly ? copy_directly(member, run.range.end, direction, window)
                       : add_below(transfer, member, run.range.end, window));
  }
  return transfer.flush();
}

}  // namespace shima
