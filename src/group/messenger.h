// Messages between members of different nodes, as far as a collective needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"

namespace shima {

class Messenger {
 public:
  // A message on its way. Its buffer is the messenger's until done() hands it back: whatever
  // becomes of a collective call, no request is left on memory that somebody else gets.
  using Ticket = std::uint64_t;
  using Buffer = std::vector<std::byte>;

  virtual ~Messenger() = default;

  // Between two members messages keep their order. Neither call blocks.
  [[nodiscard]] virtual Result<Ticket> send(int to, Buffer data) = 0;
  // A message of at most `len_bytes`.
  [[nodiscard]] virtual Result<Ticket> receive(int from, std::uint64_t len_bytes) = 0;
  // The message, as long as it is, once it has left or arrived; then the ticket is spent. Nothing
  // while it is under way.
  [[nodiscard]] virtual Result<std::optional<Buffer>> done(Ticket ticket) = 0;
  // Rests between two looks that found nothing; longer after each until moved() is called.
  virtual void rest() = 0;
  virtual void moved() = 0;
};

}  // namespace shima
