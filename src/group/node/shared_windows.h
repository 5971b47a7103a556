// Windows in shared memory that the members of one node fill or empty directly.
//
// Every server has two: an agent for its own windows, and a subgroup master for windows of agents
// on other nodes. It opens one by publishing its range and the number of members with bytes there,
// and wakes these. Each of them copies its bytes and finishes the window; the last one wakes the
// server. A member without bytes in a window never delays it, and is not woken: where members share
// cores, each that wakes takes one from those that copy.
#pragma once

#include <optional>
#include <span>

#include "base/units.h"
#include "group/node/node_segment.h"

namespace shima {

// A member of this node in one role.
struct WindowServer {
  int index = 0;
  WindowRole role = WindowRole::agent;
};

// What a window holds: bytes of a domain of an agent.
struct WindowBytes {
  int agent = 0;   // its number
  int domain = 0;  // index among the agent's domains
  TargetRange range;
};

// A window as a member sees it.
struct OpenWindow {
  WindowServer server;
  int side = 0;  // index of one of the server's two windows
  std::uint32_t serial = 0;
  WindowBytes bytes;
};

class SharedWindows {
 public:
  SharedWindows(NodeSegment& segment, Slot* slot, const WaitHooks& hooks)
      : segment_(segment), slot_(slot), hooks_(hooks) {}

  // Resets this member's windows. Call it before the exchange that starts a collective call.
  void reset();

  // For a server: publishes the memory of its windows.
  void show_staging(WindowRole role, const SharedRef& staging) { mine(role).staging = staging; }
  // `members`: the indexes of those with bytes in it.
  void open(WindowRole role, int side, const WindowBytes& bytes, std::span<const int> members);
  [[nodiscard]] bool finished(WindowRole role, int side) const;
  // Whether a finished window lacks the bytes of a member that failed.
  [[nodiscard]] bool spoiled(WindowRole role, int side) const;
  // Announces that this server opens no more windows in this call.
  void close(WindowRole role);

  // For the end of requests (collective/request_phase.h): counts a subgroup master; how many have
  // been counted; and whether those of all nodes have been.
  void count_asked() { slot_->asked.fetch_add(1, std::memory_order_release); }
  [[nodiscard]] int asked() const {
    return static_cast<int>(slot_->asked.load(std::memory_order_acquire));
  }
  void end_asking() { slot_->asking_over.store(1, std::memory_order_release); }
  [[nodiscard]] bool asking_is_over() const {
    return slot_->asking_over.load(std::memory_order_acquire) != 0;
  }

  // For a member. `seen` is the serial of the last window that it has examined there.
  [[nodiscard]] std::optional<OpenWindow> look(WindowServer server, int side,
                                               std::uint32_t seen) const;
  [[nodiscard]] bool closed(WindowServer server) const;
  // The memory of a server's two windows, of which `part` is used next.
  [[nodiscard]] Result<std::span<std::byte>> memory(WindowServer server, BufferPart part);
  void finish(const OpenWindow& window, bool copied);

  // To sleep until something changes for this member: read the state, look for work, and sleep if
  // there is none.
  [[nodiscard]] std::uint32_t state() const {
    return slot_->event.word.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] Sleeper sleeper() const { return Sleeper(hooks_, bit_of(index())); }
  [[nodiscard]] Status sleep(Sleeper& sleeper, std::uint32_t state) {
    return sleeper.change(slot_->event, state);
  }
  [[nodiscard]] const WaitHooks& hooks() const { return hooks_; }
  [[nodiscard]] int index() const { return segment_.index(); }
  // See NodeSegment.
  void use_all_cores() const { segment_.use_all_cores(); }

 private:
  // Members share bits if they are many.
  [[nodiscard]] static WaiterBits bit_of(int member) {
    return WaiterBits{1} << (static_cast<unsigned>(member) % 32);
  }
  [[nodiscard]] ServerWindows& windows_of(WindowServer server) const {
    return segment_.member(slot_, server.index).windows[static_cast<std::size_t>(server.role)];
  }
  [[nodiscard]] ServerWindows& mine(WindowRole role) const {
    return windows_of({segment_.index(), role});
  }
  [[nodiscard]] WindowState& mine(WindowRole role, int side) const {
    return mine(role).windows[static_cast<std::size_t>(side)];
  }

  NodeSegment& segment_;
  Slot* slot_;
  const WaitHooks& hooks_;
};

}  // namespace shima
