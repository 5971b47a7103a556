// Client side of a delegation desk.
//
// start() puts a request into the requester's ring and wait() takes its answer; up to ring_depth
// requests can be pending. A small payload is copied into the request; a larger one is passed by
// address if the delegatee can reach it. After the delegatee has exited, every call fails; whether
// a pending request was executed is then unknown. For one thread at a time; each thread that needs
// a ring joins separately.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/process/process_handle.h"
#include "delegate/desk.h"

namespace shima::delegate {

enum class PayloadDirection : std::uint8_t {
  to_delegatee,
  from_delegatee,  // as many bytes as the answer's value
  both,
};

struct Request {
  int operation = 0;
  std::array<std::int64_t, 3> arguments{};
  std::span<std::byte> payload;  // owned by the delegatee until the answer is taken
  PayloadDirection direction = PayloadDirection::to_delegatee;
};

// Addresses that the delegatee can use as they are.
struct Reachable {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  [[nodiscard]] bool contains(std::span<const std::byte> memory) const {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    return at >= begin && at <= end && memory.size() <= end - at;
  }
};
inline constexpr Reachable reachable_everywhere{0, UINTPTR_MAX};

// Memory that the delegatee can reach, for large payloads elsewhere; empty if it reaches
// everything.
struct Bounce {
  std::function<Result<std::byte*>(std::size_t)> take;
  std::function<void(std::byte*)> give;
};
inline constexpr std::size_t most_bounced = std::size_t{1} << 20;  // bytes of a file per request

// Larger payloads are passed by address: at this size both ways cost the same (make bench,
// delegation).
inline constexpr std::size_t usual_inline_bytes = 256;

struct RequesterOptions {
  std::size_t inline_bytes = usual_inline_bytes;  // the largest payload that is copied into a slot
  std::uint32_t spin_us = 0;
  Reachable reachable;
  int task = -1;       // the caller's number in the delegatee's space
  Bounce bounce = {};  // without it, payloads out of reach must be small
};

using Ticket = std::uint64_t;

class Requester {
 public:
  // Takes a seat at the desk in `memory`; waits for one up to `limit` (none: no limit). timed_out
  // if no seat is free, or there is no delegatee, in time.
  [[nodiscard]] static Result<std::unique_ptr<Requester>> join(
      std::span<std::byte> memory, RequesterOptions options,
      std::optional<std::chrono::milliseconds> limit);
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;
  // Waits for pending requests, whose payloads the delegatee may be using.
  ~Requester();

  // bad_count if ring_depth requests are pending; bad_argument for a payload that is too large for
  // a slot and not reachable.
  [[nodiscard]] Result<Ticket> start(const Request& request);
  [[nodiscard]] Result<bool> is_done(Ticket ticket);
  // Returns the handler's value, or its error. A ticket is valid for one answer.
  [[nodiscard]] Result<std::int64_t> wait(Ticket ticket);
  [[nodiscard]] Result<std::int64_t> call(const Request& request);

  // Whether the delegatee can use this address.
  [[nodiscard]] bool reaches(std::span<const std::byte> memory) const {
    return options_.reachable.contains(memory);
  }
  // How many of these bytes one request can carry.
  [[nodiscard]] std::size_t most_at_once(std::span<const std::byte> payload) const;

 private:
  struct Pending {
    std::span<std::byte> copy_to;  // the destination of an answer that arrives elsewhere,
    std::byte* bounce = nullptr;   // namely here, or in the slot if this is null
    Ticket ticket = 0;
    bool under_way = false;
    bool by_value = false;  // copy as many bytes as the answer's value
  };

  Requester(Desk& desk, Seat& seat, RequesterOptions options, ProcessHandle life);
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
  ProcessHandle delegatee_;
  std::optional<Error> lost_;
  Ticket next_ = 0;
  std::array<Pending, ring_depth> pending_;
};

}  // namespace shima::delegate
