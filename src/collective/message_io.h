// Sends messages of a collective call, and counts them and their bytes.
#pragma once

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
