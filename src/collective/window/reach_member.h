// Moves a member's pieces between its memory and a window of this agent: by plain copy if the
// member is the agent itself or shares its address space, with process_vm_* if it is another
// process of the node.
#pragma once

#include <cstddef>
#include <span>

#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "collective/window/window_message.h"
#include "ipc/process_vm.h"

namespace shima {

struct WindowMemory {
  std::byte* data = nullptr;
  TargetOffset begin;  // target offset of data[0]

  // Where the bytes of a run are; they are only read, unless they are to be collected there.
  [[nodiscard]] static WindowMemory of(const RunBytes& run) {
    return {const_cast<std::byte*>(run.data), run.range.begin};
  }
  // The difference between the address of a byte and its target offset.
  [[nodiscard]] std::uintptr_t base() const {
    return reinterpret_cast<std::uintptr_t>(data) - static_cast<std::uintptr_t>(begin.value);
  }
};

// read: from the member's memory into the window; write: the reverse. Moves the walk past `end`.
[[nodiscard]] Status reach_member(const PathContext& context, MemberWalk& member, TargetOffset end,
                                  Direction direction, const WindowMemory& window);

// The same with places for the bytes of each run in place of a window. The runs must have all the
// member's bytes up to the end of the last one; the walk moves past it.
[[nodiscard]] Status reach_member(const PathContext& context, MemberWalk& member,
                                  std::span<const RunBytes> runs, Direction direction);

}  // namespace shima
