// Windows that the members of one node fill or empty themselves.
//
// Every agent has two. It opens one by showing its range and how many members have bytes there;
// each of these copies and finishes it, and the last one to finish wakes the agent. A member that
// has no bytes in a window never holds it up, and may miss it altogether.
#pragma once

#include <optional>
#include <span>

#include "base/units.h"
#include "group/node_segment.h"

namespace shima {

// A window as a member sees it.
struct OpenWindow {
  int agent = 0;  // index on the node
  int side = 0;   // which of the agent's two
  std::uint32_t serial = 0;
  int domain = 0;  // which of the agent's
  TargetRange range;
};

class SharedWindows {
 public:
  SharedWindows(NodeSegment& segment, Slot* slot, const WaitHooks& hooks)
      : segment_(segment), slot_(slot), hooks_(hooks) {}

  // Clears this member's board. To be called before the exchange that starts a call.
  void reset();

  // As an agent.
  void show_staging(const SharedRef& staging) { mine().staging = staging; }
  void open(int side, int domain, TargetRange range, std::uint32_t members);
  [[nodiscard]] bool finished(int side) const;
  // Whether a finished window lacks the bytes of a member that failed.
  [[nodiscard]] bool spoiled(int side) const;
  // No more windows from this agent in this call.
  void close();

  // As a member. `seen` is the serial of the last window looked at there.
  [[nodiscard]] std::optional<OpenWindow> look(int agent, int side, std::uint32_t seen) const;
  [[nodiscard]] bool closed(int agent) const;
  // The memory of an agent's two windows.
  [[nodiscard]] Result<std::span<std::byte>> memory(int agent);
  void finish(const OpenWindow& window, bool copied);

  // Sleeping until something changes: take the state, look around, and sleep if there was nothing.
  [[nodiscard]] std::uint32_t state() const {
    return slot_->event.word.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] Status sleep(Sleeper& sleeper, std::uint32_t state) {
    return sleeper.slice(slot_->event, state);
  }
  [[nodiscard]] const WaitHooks& hooks() const { return hooks_; }
  [[nodiscard]] int index() const { return segment_.index(); }

 private:
  [[nodiscard]] Board& board(int index) const { return segment_.member(slot_, index).board; }
  [[nodiscard]] Board& mine() const { return board(segment_.index()); }

  NodeSegment& segment_;
  Slot* slot_;
  const WaitHooks& hooks_;
};

}  // namespace shima
