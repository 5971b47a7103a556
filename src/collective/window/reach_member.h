// Moves a member's pieces between its memory and a window of this agent: by plain copy if the
// member is the agent itself or shares its address space, with process_vm_* if it is another
// process of the node.
#pragma once

#include <cstddef>

#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "ipc/process_vm.h"

namespace shima {

struct WindowMemory {
  std::byte* data = nullptr;
  TargetOffset begin;  // target offset of data[0]

  // The difference between the address of a byte and its target offset.
  [[nodiscard]] std::uintptr_t base() const {
    return reinterpret_cast<std::uintptr_t>(data) - static_cast<std::uintptr_t>(begin.value);
  }
};

// read: from the member's memory into the window; write: the reverse. Moves the walk past `end`.
[[nodiscard]] Status reach_member(const PathContext& context, MemberWalk& member, TargetOffset end,
                                  Direction direction, const WindowMemory& window);

}  // namespace shima
