// What members bring to the meeting that starts a collective transfer (Channel::combine).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "base/result.h"
#include "ipc/wait.h"

namespace shima {

// The part of a message that rarely changes: it is written only if its serial is not that of the
// last one.
class LastingPart {
 public:
  virtual ~LastingPart() = default;
  // Never used again for other bytes; 0: there are none.
  [[nodiscard]] virtual std::uint64_t serial() const = 0;
  [[nodiscard]] virtual std::size_t len_bytes() const = 0;
  virtual void write(std::span<std::byte> out) const = 0;
};

// A value of the same length on all members, which is joined, and a message for the near ones.
struct Contribution {
  using Value = std::array<std::byte, 128>;  // holds the longest value
  std::span<const std::byte> value;
  std::span<const std::byte> message;
  const LastingPart* lasting = nullptr;  // of the message
  // If a member of a node needs it, one member does it for that node after all near it have arrived
  // without an error, and before any leaves; it may read the near messages. Members of other nodes
  // may then still bring an error. All members bring the same work.
  std::optional<FunctionRef<Status()>> work{};
  bool needs_work = false;
  WaitLength wait = WaitLength::unknown;  // for the others
};

// A near member's message.
struct NearMessage {
  std::span<const std::byte> bytes;
  std::uint64_t lasting_serial = 0;
  std::span<const std::byte> lasting;  // until its member brings another one
};

// Joins `one` into `all`; associative and commutative.
using JoinValues = void (*)(std::span<std::byte> all, std::span<const std::byte> one);

}  // namespace shima
