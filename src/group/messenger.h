// Messages between members of different nodes, for collective transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"

namespace shima {

class Messenger {
 public:
  // A message in flight. The messenger owns its buffer until done() returns it: however a
  // collective call ends, no request refers to memory that is used for something else.
  using Ticket = std::uint64_t;
  using Buffer = std::vector<std::byte>;

  virtual ~Messenger() = default;

  // Messages between two members keep their order. Neither call blocks.
  [[nodiscard]] virtual Result<Ticket> send(int to, Buffer data) = 0;
  // A message of at most `len_bytes`.
  [[nodiscard]] virtual Result<Ticket> receive(int from, std::uint64_t len_bytes) = 0;
  // The message, with its actual length, once it was sent or has arrived; then the ticket is
  // invalid. Nothing while it is in flight.
  [[nodiscard]] virtual Result<std::optional<Buffer>> done(Ticket ticket) = 0;
  // Sleeps between two polls that found nothing; longer after each until moved() is called.
  virtual void rest() = 0;
  virtual void moved() = 0;
};

}  // namespace shima
