// Who has somebody else carry out its requests.
//
// start() puts a request into the requester's ring and wait() takes its answer, so that up to
// ring_depth of them are under way at a time. A payload travels in the request if it is small, and
// by its address otherwise, where the delegatee can reach that. Once the delegatee is gone, every
// call fails; whether what was under way has been carried out is then not known.
// For one thread at a time; a thread that wants its own ring joins for itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "delegate/desk.h"
#include "delegate/life.h"

namespace shima::delegate {

enum class PayloadDirection : std::uint8_t {
  to_delegatee,
  from_delegatee,  // as many bytes as the answer's value says
  both,
};

struct Request {
  int operation = 0;
  std::array<std::int64_t, 3> arguments{};
  std::span<std::byte> payload;  // stays the delegatee's until the answer is taken
  PayloadDirection direction = PayloadDirection::to_delegatee;
};

// Addresses that mean the same to the delegatee.
struct Reachable {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool contains(std::span<const std::byte> memory) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    return at >= begin && at <= end && memory.size() <= end - at;
  }
};
inline constexpr Reachable reachable_everywhere{0, UINTPTR_MAX};

// Memory that the delegatee can reach, for large payloads that lie elsewhere; none where it reaches
// all.
struct Bounce {
  std::function<Result<std::byte*>(std::size_t)> take;
  std::function<void(std::byte*)> give;
};
inline constexpr std::size_t most_bounced = std::size_t{1} << 20;  // at once, of a file's bytes

// Larger payloads go by their address: here both ways cost the same (make bench, delegation).
inline constexpr std::size_t usual_inline_bytes = 256;

struct RequesterOptions {
  std::size_t inline_bytes = usual_inline_bytes;  // the largest payload that travels inline
  std::uint32_t spin_us = 0;
  Reachable reachable;
  int task = -1;       // the caller's number in the delegatee's space
  Bounce bounce = {};  // else what is out of reach has to be small
};

using Ticket = std::uint64_t;

class Requester {
 public:
  // Takes a seat of the desk in `memory`, and waits for one for `limit` (none: for ever).
  // timed_out where no seat is free, or no delegatee is there, in time.
  [[nodiscard]] static Result<std::unique_ptr<Requester>> join(
      std::span<std::byte> memory, RequesterOptions options,
      std::optional<std::chrono::milliseconds> limit);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  // Waits for what is under way, whose payloads the delegatee may be using.
  ~Requester();

  // bad_count where ring_depth requests are under way; bad_argument for a payload that is too large
  // to travel inline and cannot be reached.
  [[nodiscard]] Result<Ticket> start(const Request& request);
  [[nodiscard]] Result<bool> is_done(Ticket ticket);
  // The value that the handler gave, or its error. A ticket is good for one answer.
  [[nodiscard]] Result<std::int64_t> wait(Ticket ticket);
  [[nodiscard]] Result<std::int64_t> call(const Request& request);

  // Whether the delegatee can follow this address.
  [[nodiscard]] bool reaches(std::span<const std::byte> memory) const {
    return options_.reachable.contains(memory);
  }
  // How many of these bytes one request can carry.
  [[nodiscard]] std::size_t most_at_once(std::span<const std::byte> payload) const;

 private:
  struct Pending {
    std::span<std::byte> copy_to;  // where an answer's bytes go that come to another place
    std::byte* bounce = nullptr;   // which is this or, where there is none, the slot
    Ticket ticket = 0;
    bool under_way = false;
    bool by_value = false;  // of them as many as the value says
  };

  Requester(Desk& desk, Seat& seat, RequesterOptions options, Life life);
  [[nodiscard]] Status check() const;
  [[nodiscard]] Result<Pending*> pending_of(Ticket ticket);
  [[nodiscard]] bool travels_inline(std::span<const std::byte> payload) const;
  [[nodiscard]] Result<std::byte*> bounce_of(std::span<const std::byte> payload) const;
  void give_back(Pending& pending) const;
  void fill(Slot& slot, const Request& request, std::byte* copy);
  [[nodiscard]] Result<std::int64_t> collect(Slot& slot, Pending& pending);
  [[nodiscard]] Slot& slot_of(Ticket ticket) { return seat_.slots[ticket % ring_depth]; }

  Desk& desk_;
  Seat& seat_;
  RequesterOptions options_;
  Life delegatee_;
  std::optional<Error> lost_;
  Ticket next_ = 0;
  std::array<Pending, ring_depth> pending_;
};

}  // namespace shima::delegate
