#include "collective/guests.h"

#include <algorithm>

#include "base/fault_point.h"
#include "collective/message_io.h"
#include "group/node/shared_windows.h"

namespace shima {

Guests::Guests(PathContext& context, std::optional<int> requests, std::vector<Domain> domains)
    : context_(context),
      domains_(std::move(domains)),
      memory_(most_granted),
      requests_(requests),
      all_came_(requests == 0) {}

void Guests::add(Guest& guest, const WindowId& window) {
  if (window.none()) guest.has_more = false;
  if (guest.has_more) guest.known.push_back(window);
}

Result<bool> Guests::have_come() {
  if (all_came_) return true;
  const bool is_last = is_last_request();
  SHIMA_TRY(look_for_requests());
  for (auto arriving = arriving_.begin(); arriving != arriving_.end();) {
    SHIMA_TRY_ASSIGN(const bool taken, take_request(*arriving));
    arriving = taken ? arriving_.erase(arriving) : arriving + 1;
  }
  all_came_ = arriving_.empty() && (requests_ ? found_ == *requests_ : is_last);
  return all_came_;
}

// Asked before the agent looks for requests. If no further one comes, all have begun to be
// received.
bool Guests::is_last_request() const {
  return !requests_ && context_.channel.windows()->asking_is_over();
}

// Requests of the next call cannot be found here: a member sends them only after the agreement that
// ends this call, in which this member takes part when it has stopped looking.
Status Guests::look_for_requests() {
  Messenger& messenger = *context_.messenger;
  while (!requests_ || found_ < *requests_) {
    SHIMA_TRY_ASSIGN(const std::optional<int> master, messenger.sender(Lane::request));
    if (!master) return {};
    SHIMA_TRY_ASSIGN(const auto ticket, messenger.receive(*master, Lane::request,
                                                          MessageBuffer(sizeof(WindowRequest))));
    ++found_;
    arriving_.push_back({*master, ticket});
  }
  return {};
}

// Returns whether it has arrived.
Result<bool> Guests::take_request(const Arriving& arriving) {
  SHIMA_TRY_ASSIGN(const auto arrived, context_.messenger->done(arriving.ticket));
  if (!arrived) return false;
  std::span<const std::byte> bytes = arrived->bytes();
  SHIMA_TRY_ASSIGN(const auto request, take_from<WindowRequest>(bytes));
  Guest guest{.master = arriving.master, .known = {}};
  add(guest, request.first);
  add(guest, request.second);
  if (!guest.known.empty()) guests_.push_back(std::move(guest));
  return true;
}

bool Guests::next_is_known() const {
  return std::ranges::none_of(
      guests_, [](const Guest& guest) { return guest.known.empty() && guest.has_more; });
}

WindowId Guests::next() const {
  WindowId first;
  for (const Guest& guest : guests_) {
    if (guest.known.empty()) continue;
    if (first.none() || guest.known.front() < first) first = guest.known.front();
  }
  return first;
}

void Guests::open(int side, const WindowId& window) {
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    Guest& guest = guests_[i];
    if (guest.known.empty() || guest.known.front() != window) continue;
    guest.known.pop_front();
    awaited_.push_back({static_cast<int>(i), side, window, {}});
  }
}

bool Guests::all_arrived(int side) const {
  return std::ranges::none_of(awaited_,
                              [side](const Awaited& awaited) { return awaited.side == side; });
}

// The memory for the message is there before the guest is told to send it.
Status Guests::grant(Awaited& awaited) {
  Messenger& messenger = *context_.messenger;
  const int master = guests_[static_cast<std::size_t>(awaited.guest)].master;
  SHIMA_TRY_ASSIGN(const Window window,
                   window_of(awaited.window, domains_, context_.plan.window_bytes));
  const std::size_t len_bytes = window.range.len_bytes();
  const std::size_t data = context_.direction == Direction::write ? len_bytes : 0;
  const std::size_t most_bytes =
      sizeof(WindowHead) + data + most_runs_bytes(len_bytes, context_.plan.granule_bytes);
  MessageBuffer buffer = data != 0 ? memory_.buffer(most_bytes) : MessageBuffer(most_bytes);
  fault_point(FaultPhase::grant);
  SHIMA_TRY_ASSIGN(awaited.ticket, messenger.receive(master, Lane::to_agent, std::move(buffer)));
  SHIMA_TRY_ASSIGN(const auto ticket,
                   send_value(context_, master, Lane::grant, WindowGrant{awaited.window}));
  sent_.push_back(ticket);
  return {};
}

Result<std::optional<std::pair<int, GuestMessage>>> Guests::next_message() {
  auto granted = as_unsigned(
      std::ranges::count_if(awaited_, [](const Awaited& a) { return a.ticket.has_value(); }));
  for (Awaited& awaited : awaited_) {
    if (granted >= most_granted) break;
    if (awaited.ticket) continue;
    SHIMA_TRY(grant(awaited));
    ++granted;
  }
  for (auto awaited = awaited_.begin(); awaited != awaited_.end(); ++awaited) {
    if (!awaited->ticket || !is_first_of_guest(awaited)) continue;
    SHIMA_TRY_ASSIGN(auto arrived, context_.messenger->done(*awaited->ticket));
    if (!arrived) continue;
    SHIMA_TRY_ASSIGN(auto message, read(*awaited, *std::move(arrived)));
    const int side = awaited->side;
    awaited_.erase(awaited);
    return std::pair(side, std::move(message));
  }
  return std::nullopt;
}

// A guest's messages are taken in order, since each announces a window.
bool Guests::is_first_of_guest(std::deque<Awaited>::const_iterator awaited) const {
  return std::none_of(awaited_.cbegin(), awaited,
                      [&](const Awaited& other) { return other.guest == awaited->guest; });
}

Result<GuestMessage> Guests::read(const Awaited& awaited, MessageBuffer buffer) {
  std::span<const std::byte> bytes = buffer.bytes();
  SHIMA_TRY_ASSIGN(const auto head, take_from<WindowHead>(bytes));
  if (head.window != awaited.window)
    return fail(Code::internal, "a message of another node: not the window that was granted");
  add(guests_[static_cast<std::size_t>(awaited.guest)], head.ahead);
  SHIMA_TRY_ASSIGN(const Window window,
                   window_of(head.window, domains_, context_.plan.window_bytes));
  GuestMessage message{.guest = awaited.guest, .buffer = {}, .data = {}, .runs = {}};
  message.runs.reset(window.range, context_.plan.granule_bytes);
  SHIMA_TRY(take_runs(bytes, message.runs));
  if (context_.direction == Direction::read) return message;  // the runs are all that it has
  message.data = bytes;
  message.buffer = std::move(buffer);  // keeps its bytes where they are
  return message;
}

Result<Guests::Reply> Guests::reply(const GuestMessage& message, const ReplyHead& head,
                                    std::byte* image) {
  fault_point(FaultPhase::reply);
  const int master = guests_[static_cast<std::size_t>(message.guest)].master;
  const TargetOffset end{head.end};
  const std::vector<iovec> pieces = pieces_to_send(context_, message.runs, end, image);
  Reply sent{.copied_bytes = pieces.empty() ? message.runs.len_bytes() : 0};
  // The memory of an I/O node's calls is promised: without spares.
  const std::size_t len_bytes = sizeof head + sent.copied_bytes;
  MessageBuffer buffer =
      context_.messenger->sends_pieces() ? MessageBuffer(len_bytes) : memory_.buffer(len_bytes);
  std::span<std::byte> out = buffer.bytes();
  put_into(out, head);
  if (pieces.empty()) {
    buffer.set_len_bytes(sizeof head + pack_runs(message.runs, end, image, out));
    SHIMA_TRY_ASSIGN(sent.ticket, send_message(context_, master, Lane::reply, std::move(buffer)));
  } else {
    SHIMA_TRY_ASSIGN(sent.ticket,
                     send_pieces(context_, master, Lane::reply, std::move(buffer), pieces));
  }
  return sent;
}

Result<bool> Guests::all_sent() {
  SHIMA_TRY(finish_sent(context_, sent_));
  return sent_.empty();
}

}  // namespace shima
