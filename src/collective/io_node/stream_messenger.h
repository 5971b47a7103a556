// A Messenger over connections: between an agent on an I/O node and the subgroup masters that take
// part in a call. Each side numbers its peers, which are not ranks.
#pragma once

#include <map>
#include <vector>

#include "base/clock.h"
#include "group/messenger.h"
#include "net/message_stream.h"

namespace shima {

class StreamMessenger final : public Messenger {
 public:
  // The streams must outlive the messenger.
  void add(int peer, MessageStream& stream);

  [[nodiscard]] Result<Ticket> send(int to, Lane lane, MessageBuffer message) override;
  [[nodiscard]] bool sends_pieces() const override { return true; }
  [[nodiscard]] Result<Ticket> send_pieces(int to, Lane lane, MessageBuffer first,
                                           std::span<const iovec> rest) override;
  [[nodiscard]] Result<Ticket> receive(int from, Lane lane, MessageBuffer buffer) override;
  [[nodiscard]] Result<std::optional<int>> sender(Lane lane) override;
  [[nodiscard]] Result<std::optional<MessageBuffer>> done(Ticket ticket) override;
  // Sleeps until something can be moved, but not for long, and returns 0.
  [[nodiscard]] std::chrono::nanoseconds pause() override;
  void moved() override { pause_us_ = shortest_pause_us; }

  // Sleeps until something can be moved or `bell` can be read; at most so long, if not negative.
  void sleep(std::chrono::nanoseconds longest, int bell = -1);

 private:
  struct UnderWay {
    int peer = 0;
    Lane lane{};
    bool incoming = false;
    std::uint64_t number = 0;  // in the stream
  };
  static constexpr std::uint32_t shortest_pause_us = 50;
  static constexpr std::uint32_t longest_pause_us = 2000;

  [[nodiscard]] MessageStream& stream_of(int peer) { return *streams_.find(peer)->second; }

  std::map<int, MessageStream*> streams_;
  std::map<Ticket, UnderWay> under_way_;
  Ticket next_ = 1;
  std::uint32_t pause_us_ = shortest_pause_us;
};

}  // namespace shima
