#include "collective/io_node/stream_messenger.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace shima {

void StreamMessenger::add(int peer, MessageStream& stream) { streams_.emplace(peer, &stream); }

Result<Messenger::Ticket> StreamMessenger::send(int to, Lane lane, MessageBuffer message) {
  return send_pieces(to, lane, std::move(message), {});
}

Result<Messenger::Ticket> StreamMessenger::send_pieces(int to, Lane lane, MessageBuffer first,
                                                       std::span<const iovec> rest) {
  const std::uint64_t number =
      stream_of(to).send(static_cast<std::uint32_t>(lane), std::move(first), rest);
  under_way_.emplace(next_, UnderWay{to, lane, false, number});
  return next_++;
}

Result<Messenger::Ticket> StreamMessenger::receive(int from, Lane lane, MessageBuffer buffer) {
  const std::uint64_t number =
      stream_of(from).expect(static_cast<std::uint32_t>(lane), std::move(buffer));
  under_way_.emplace(next_, UnderWay{from, lane, true, number});
  return next_++;
}

Result<std::optional<int>> StreamMessenger::sender(Lane lane) {
  for (const auto& [peer, stream] : streams_) {
    stream->progress();
    if (stream->has_unexpected(static_cast<std::uint32_t>(lane))) return peer;
    SHIMA_TRY(stream->status());
  }
  return std::nullopt;
}

Result<std::optional<MessageBuffer>> StreamMessenger::done(Ticket ticket) {
  const auto found = under_way_.find(ticket);
  const UnderWay& one = found->second;
  MessageStream& stream = stream_of(one.peer);
  stream.progress();
  std::optional<MessageBuffer> message;
  if (one.incoming) {
    message = stream.take(static_cast<std::uint32_t>(one.lane), one.number);
  } else if (one.number < stream.sent()) {
    message.emplace();
  }
  if (message) {
    under_way_.erase(found);
  } else {
    SHIMA_TRY(stream.status());
  }
  return message;
}

std::chrono::nanoseconds StreamMessenger::pause() {
  sleep(std::chrono::microseconds(pause_us_));
  pause_us_ = std::min(pause_us_ * 2, longest_pause_us);
  return {};
}

void StreamMessenger::sleep(std::chrono::nanoseconds longest, int bell) {
  std::vector<pollfd> watched;
  watched.reserve(streams_.size() + 1);
  for (const auto& [peer, stream] : streams_)
    watched.push_back({stream->status() ? stream->socket() : -1, stream->events(), 0});
  watched.push_back({bell, POLLIN, 0});
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec limit{seconds.count(), (longest - seconds).count()};
  ::ppoll(watched.data(), watched.size(), longest.count() < 0 ? nullptr : &limit, nullptr);
}

}  // namespace shima
