// A member's work with the shared windows of one server on its node: it copies its own bytes into
// each window that is opened (writes) or out of it (reads).
//
// After an error it continues to finish windows without copying, so that the server is not blocked.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "group/node/shared_windows.h"

namespace shima {

class WindowFiller {
 public:
  // `agent`: the agent that the server is; nothing for a subgroup master, which works for several.
  WindowFiller(PathContext& context, WindowServer server, std::optional<int> agent);

  // Whether every window of the server with bytes of this member is served: the member has none
  // left in the domains of `agent`, or the server has closed.
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] const Status& status() const { return status_; }
  // Serves open windows; returns whether there were any.
  [[nodiscard]] bool step();

 private:
  [[nodiscard]] AgentWalk& walk_of(int agent);
  [[nodiscard]] Status copy(const OpenWindow& window, MemberWalk& walk);

  PathContext* context_;
  WindowServer server_;
  std::optional<int> agent_;
  std::map<int, AgentWalk> walks_;  // by agent; a master's, from its first window on
  std::array<std::uint32_t, 2> seen_{};
  bool done_ = false;
  Status status_;
};

}  // namespace shima
