// Sends messages of a collective call, and counts them and their bytes.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/window/path_context.h"
#include "collective/window/window_message.h"
#include "group/messenger.h"

namespace shima {

[[nodiscard]] inline Result<Messenger::Ticket> send_message(PathContext& context, int to, Lane lane,
                                                            MessageBuffer message) {
  ++context.counters.wire_messages;
  context.counters.wire_bytes += message.bytes().size();
  return context.messenger->send(to, lane, std::move(message));
}

[[nodiscard]] inline Result<Messenger::Ticket> send_pieces(PathContext& context, int to, Lane lane,
                                                           MessageBuffer first,
                                                           std::span<const iovec> rest) {
  ++context.counters.wire_messages;
  context.counters.wire_bytes += first.bytes().size();
  for (const iovec& piece : rest) context.counters.wire_bytes += piece.iov_len;
  return context.messenger->send_pieces(to, lane, std::move(first), rest);
}

// The places of the runs below `end` in a window's image, if the messenger can send them from
// there; nothing if they are to be copied.
[[nodiscard]] inline std::vector<iovec> pieces_to_send(const PathContext& context,
                                                       const Coverage& runs, TargetOffset end,
                                                       std::byte* image) {
  std::vector<iovec> pieces;
  if (!context.messenger->sends_pieces() || !has_large_runs(runs)) return pieces;
  std::ignore = runs.for_each_run(0, [&](TargetRange run) -> Status {
    const TargetRange part{run.begin, std::min(run.end, end)};
    if (!part.empty())
      pieces.push_back({image + (run.begin - runs.window().begin), part.len_bytes()});
    return {};
  });
  return pieces;
}

template <class T>
[[nodiscard]] Result<Messenger::Ticket> send_value(PathContext& context, int to, Lane lane,
                                                   const T& value) {
  MessageBuffer message(sizeof value);
  std::span<std::byte> out = message.bytes();
  put_into(out, value);
  return send_message(context, to, lane, std::move(message));
}

// Removes the messages that have been sent.
[[nodiscard]] inline Status finish_sent(PathContext& context,
                                        std::vector<Messenger::Ticket>& tickets) {
  for (auto ticket = tickets.begin(); ticket != tickets.end();) {
    SHIMA_TRY_ASSIGN(const auto sent, context.messenger->done(*ticket));
    ticket = sent ? tickets.erase(ticket) : ticket + 1;
  }
  return {};
}

}  // namespace shima
