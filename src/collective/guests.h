// Subgroups on other nodes that have bytes in an agent's windows.
//
// The agent knows of each guest its next two windows. It grants an open window to each guest in it,
// at most to a few at a time, so that its memory does not depend on their number; then the guest's
// message arrives (collective/window/window_message.h). Nothing here blocks.
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
  // `masters`: the ranks of the subgroups' masters for this agent, whose domains are `domains`.
  Guests(PathContext& context, std::span<const int> masters, std::vector<Domain> domains);

  // Receives the guests' requests; true once all have come.
  [[nodiscard]] Result<bool> have_come();
  [[nodiscard]] bool empty() const { return guests_.empty(); }
  // Whether the next window of every guest is known.
  [[nodiscard]] bool next_is_known() const;
  // The first of the guests' next windows.
  [[nodiscard]] WindowId next() const;
  // Opens a window on a side: all guests whose next window it is are waited for.
  void open(int side, const WindowId& window);
  [[nodiscard]] bool all_arrived(int side) const;
  // Grants what can be granted. Returns a message for an open window that has arrived.
  [[nodiscard]] Result<std::optional<std::pair<int, GuestMessage>>> next_message();
  // Sends a guest the bytes of its runs, from the window's image.
  [[nodiscard]] Status reply(const GuestMessage& message, const ReplyHead& head,
                             const std::byte* image);
  // Whether nothing that was sent is under way any more.
  [[nodiscard]] Result<bool> all_sent();

 private:
  struct Guest {
    int master = 0;
    std::deque<WindowId> known;                // the next windows
    bool has_more = true;                      // beyond the known ones, as far as we know
    std::optional<Messenger::Ticket> request;  // under way
  };
  struct Awaited {
    int guest = 0;
    int side = 0;
    WindowId window;
    std::optional<Messenger::Ticket> ticket;  // once granted
  };
  static void add(Guest& guest, const WindowId& window);
  [[nodiscard]] Status grant(Awaited& awaited);
  [[nodiscard]] bool is_first_of_guest(std::deque<Awaited>::const_iterator awaited) const;
  [[nodiscard]] Result<GuestMessage> read(const Awaited& awaited, MessageBuffer buffer);

  PathContext& context_;
  std::vector<Domain> domains_;
  std::vector<Guest> guests_;
  std::deque<Awaited> awaited_;  // in the order of windows
  std::vector<Messenger::Ticket> sent_;
  bool asked_ = false;  // for the requests
};

}  // namespace shima
