// Subgroups on other nodes that have bytes in an agent's windows.
//
// A subgroup becomes a guest by its request, which any member elsewhere may send. Either every
// subgroup sends one, and the agent counts them; or the members learn together when no further one
// comes (collective/request_phase.h). The agent knows of each guest its next two windows. It grants
// an open window to each guest in it, at most to a few at a time, so that its memory does not
// depend on their number; then the guest's message arrives (collective/window/window_message.h).
// Nothing here blocks.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "collective/window/path_context.h"
#include "collective/window/window_message.h"
#include "group/messenger.h"

namespace shima {

// What a guest sends for a window: its runs, and for a write their bytes.
struct GuestMessage {
  int guest = 0;
  MessageBuffer buffer;
  std::span<const std::byte> data;  // in the buffer
  Coverage runs;
};

class Guests {
 public:
  static constexpr std::size_t most_granted = 4;  // messages that an agent has memory for at once

  // `requests`: how many come; nothing: not known. `domains`: of the agent.
  Guests(PathContext& context, std::optional<int> requests, std::vector<Domain> domains);

  // Receives the guests' requests; true once all have come.
  [[nodiscard]] Result<bool> have_come();
  // Whether there are none, and none can come.
  [[nodiscard]] bool none() const { return all_came_ && guests_.empty(); }
  // Whether the next window of every guest is known.
  [[nodiscard]] bool next_is_known() const;
  // The first of the guests' next windows.
  [[nodiscard]] WindowId next() const;
  // Opens a window on a side: all guests whose next window it is are waited for.
  void open(int side, const WindowId& window);
  [[nodiscard]] bool all_arrived(int side) const;
  // Grants what can be granted. Returns a message for an open window that has arrived.
  [[nodiscard]] Result<std::optional<std::pair<int, GuestMessage>>> next_message();
  struct Reply {
    Messenger::Ticket ticket = 0;
    std::size_t copied_bytes = 0;  // 0: it is sent from the window's image
  };
  // Sends a guest the bytes of its runs. The image must stay until they have been sent.
  [[nodiscard]] Result<Reply> reply(const GuestMessage& message, const ReplyHead& head,
                                    std::byte* image);
  // Whether no grant is under way any more.
  [[nodiscard]] Result<bool> all_sent();

 private:
  struct Guest {
    int master = 0;
    std::deque<WindowId> known;  // the next windows
    bool has_more = true;        // beyond the known ones, as far as we know
  };
  struct Awaited {
    int guest = 0;
    int side = 0;
    WindowId window;
    std::optional<Messenger::Ticket> ticket;  // once granted
  };
  // A request that the agent receives.
  struct Arriving {
    int master = 0;
    Messenger::Ticket ticket = 0;
  };
  static void add(Guest& guest, const WindowId& window);
  [[nodiscard]] bool is_last_request() const;
  [[nodiscard]] Status look_for_requests();
  [[nodiscard]] Result<bool> take_request(const Arriving& arriving);
  [[nodiscard]] Status grant(Awaited& awaited);
  [[nodiscard]] bool is_first_of_guest(std::deque<Awaited>::const_iterator awaited) const;
  [[nodiscard]] Result<GuestMessage> read(const Awaited& awaited, MessageBuffer buffer);

  PathContext& context_;
  std::vector<Domain> domains_;
  std::vector<Guest> guests_;
  std::deque<Awaited> awaited_;  // in the order of windows
  std::vector<Messenger::Ticket> sent_;
  MessageMemory memory_;
  std::optional<int> requests_;     // how many come
  int found_ = 0;                   // requests that have begun to be received
  std::vector<Arriving> arriving_;  // those of them that were not taken
  bool all_came_ = false;
};

}  // namespace shima
