// Messages between members of different nodes, as far as a collective needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace shima {

class Messenger {
 public:
  // A message on its way; its buffer must stay until done() says so.
  using Ticket = std::uint64_t;

  virtual ~Messenger() = default;

  // Between two members messages keep their order. Neither call blocks.
  [[nodiscard]] virtual Result<Ticket> send(int to, std::span<const std::byte> data) = 0;
  [[nodiscard]] virtual Result<Ticket> receive(int from, std::span<std::byte> data) = 0;
  // Whether the message has left or arrived; if so `len_bytes` is its length and the ticket is
  // spent.
  [[nodiscard]] virtual Result<bool> done(Ticket ticket, std::uint64_t& len_bytes) = 0;
  // Rests between two looks that found nothing; longer after each until moved() is called.
  virtual void rest() = 0;
  virtual void moved() = 0;
};

}  // namespace shima
