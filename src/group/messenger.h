// Messages between members of different nodes, for collective transfers.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>

#include "base/result.h"
#include "net/message_buffer.h"

namespace shima {

// Messages of different lanes between the same members are received independently of each other.
enum class Lane : std::uint8_t {
  request,   // to an agent, of any member; sent once the agent has begun to receive it
  to_agent,  // windows
  grant,     // an agent's permission to send
  reply,     // an agent's bytes
  leaders,   // between node leaders
};
inline constexpr int lane_count = 5;

class Messenger {
 public:
  // A message in flight. The messenger owns its buffer until done() returns it: however a
  // collective call ends, no request refers to memory that is used for something else.
  using Ticket = std::uint64_t;

  virtual ~Messenger() = default;

  // Messages between two members in one lane keep their order. Neither call blocks.
  [[nodiscard]] virtual Result<Ticket> send(int to, Lane lane, MessageBuffer message) = 0;
  // The same for a message of which a part is elsewhere, in pieces that must stay there until
  // done() returns it; only if the messenger can send from there.
  [[nodiscard]] virtual bool sends_pieces() const { return false; }
  [[nodiscard]] virtual Result<Ticket> send_pieces(int to, Lane lane, MessageBuffer first,
                                                   std::span<const iovec> rest) {
    std::ignore = std::tie(to, lane, first, rest);
    return fail(Code::internal, "this messenger sends no pieces");
  }
  // A message that fits `buffer`.
  [[nodiscard]] virtual Result<Ticket> receive(int from, Lane lane, MessageBuffer buffer) = 0;
  // A member whose message in this lane has arrived and that no receive expects.
  [[nodiscard]] virtual Result<std::optional<int>> sender(Lane lane) = 0;
  // The message, with its actual length, once it was sent or has arrived; then the ticket is
  // invalid. Nothing while it is in flight.
  [[nodiscard]] virtual Result<std::optional<MessageBuffer>> done(Ticket ticket) = 0;
  // How long to sleep after a poll that found nothing, 0 to yield; longer after each until moved()
  // is called.
  [[nodiscard]] virtual std::chrono::nanoseconds pause() = 0;
  virtual void moved() = 0;
};

}  // namespace shima
