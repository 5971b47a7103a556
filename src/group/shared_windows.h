// Windows in shared memory that the members of one node fill or empty directly.
//
// Every agent has two. It opens one by publishing its range and the number of members with bytes
// there. Each of these members copies its bytes and finishes the window; the last one wakes the
// agent. A member without bytes in a window never delays it, and may not notice it at all.
#pragma once

#include <optional>
#include <span>

#include "base/units.h"
#include "group/node_segment.h"

namespace shima {

// A window as a member sees it.
struct OpenWindow {
  int agent = 0;  // the agent's index on the node
  int side = 0;   // index of one of the agent's two windows
  std::uint32_t serial = 0;
  int domain = 0;  // index among the agent's domains
  TargetRange range;
};

class SharedWindows {
 public:
  SharedWindows(NodeSegment& segment, Slot* slot, const WaitHooks& hooks)
      : segment_(segment), slot_(slot), hooks_(hooks) {}

  // Resets this member's windows. Call it before the exchange that starts a collective call.
  void reset();

  // For an agent: publishes the memory of its windows.
  void show_staging(const SharedRef& staging) { mine().staging = staging; }
  void open(int side, int domain, TargetRange range, std::uint32_t members);
  [[nodiscard]] bool finished(int side) const;
  // Whether a finished window lacks the bytes of a member that failed.
  [[nodiscard]] bool spoiled(int side) const;
  // Announces that this agent opens no more windows in this call.
  void close();

  // For a member. `seen` is the serial of the last window that it has examined there.
  [[nodiscard]] std::optional<OpenWindow> look(int agent, int side, std::uint32_t seen) const;
  [[nodiscard]] bool closed(int agent) const;
  // The memory of an agent's two windows.
  [[nodiscard]] Result<std::span<std::byte>> memory(int agent);
  void finish(const OpenWindow& window, bool copied);

  // To sleep until something changes: read the state, look for work, and sleep if there is none.
  [[nodiscard]] std::uint32_t state() const {
    return slot_->event.word.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] Status sleep(Sleeper& sleeper, std::uint32_t state) {
    return sleeper.slice(slot_->event, state);
  }
  [[nodiscard]] const WaitHooks& hooks() const { return hooks_; }
  [[nodiscard]] int index() const { return segment_.index(); }

 private:
  [[nodiscard]] AgentWindows& windows_of(int index) const {
    return segment_.member(slot_, index).agent_windows;
  }
  [[nodiscard]] AgentWindows& mine() const { return windows_of(segment_.index()); }

  NodeSegment& segment_;
  Slot* slot_;
  const WaitHooks& hooks_;
};

}  // namespace shima
