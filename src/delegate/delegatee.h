// Server side of a delegation desk: executes requests from the rings.
//
// serve() visits the requesters in turn, takes one request of each at a time, and answers it. A
// table of handlers defines the operations. A handler that cannot answer yet keeps the
// ReceivedRequest and calls finish() later, from any thread. A requester that dies loses its seat
// once all its requests are answered; the others are not affected.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/process/process_handle.h"
#include "delegate/desk.h"

namespace shima::delegate {

// A request as its handler sees it.
struct ReceivedRequest {
  int operation = 0;
  std::array<std::int64_t, 3> arguments{};
  std::span<std::byte> payload;  // in the requester's memory or in the slot
  Holder requester;
  std::uint32_t seat = 0;
  Slot* slot = nullptr;
};

// Returns the value for the requester; nothing: finish() will be called.
using Handler = std::function<Result<std::optional<std::int64_t>>(const ReceivedRequest&)>;

struct DelegateeOptions {
  std::uint32_t seats = 64;
  std::uint32_t spin_us = 0;
  // Called before the first request of a requester is read, and after its last one; may be empty.
  // An error of `admit` is returned by all of the requester's calls.
  std::function<Status(const Holder&)> admit;
  std::function<void(const Holder&)> dismiss;
};

class Delegatee {
 public:
  [[nodiscard]] static std::size_t memory_needed(std::uint32_t seats) {
    return Desk::len_bytes(seats);
  }
  // `memory`: zero bytes that the requesters share, as many as needed, aligned to a cache line. It
  // must stay mapped as long as requesters use it, even after the delegatee has exited.
  [[nodiscard]] static Result<std::unique_ptr<Delegatee>> open(std::span<std::byte> memory,
                                                               DelegateeOptions options);
  Delegatee(const Delegatee&) = delete;
  Delegatee& operator=(const Delegatee&) = delete;
  // Unanswered requests fail. All jobs must be finished.
  ~Delegatee();

  // Call it before serving. An operation without a handler fails for its requester. The handler of
  // operation_left is called when a requester has left or died.
  [[nodiscard]] Status offer(int operation, Handler handler);

  // Serves until stop(), or until no request came for `limit` (none: no limit); returns the number
  // of requests. One thread at a time.
  [[nodiscard]] Result<std::uint64_t> serve(std::optional<std::chrono::milliseconds> limit);
  // Waits up to `limit` for requests, serves the pending ones, and returns: for a caller with other
  // work to do.
  [[nodiscard]] Result<std::uint64_t> serve_some(std::optional<std::chrono::milliseconds> limit);
  // Ends serve(), or the next call of it. Any thread may call it, and a signal handler.
  void stop();
  void finish(const ReceivedRequest& job, const Result<std::int64_t>& answer);

 private:
  struct Guest {
    std::uint64_t holder = 0;  // 0: free
    ProcessHandle life;
    bool is_leaving = false;                  // the requester left or died
    std::size_t next = 0;                     // the slot of its next request
    std::atomic<std::uint32_t> under_way{0};  // a bit for each slot with an unanswered request
  };

  Delegatee(Desk& desk, DelegateeOptions options);
  [[nodiscard]] bool something_waits() const;
  [[nodiscard]] bool has_request(std::uint32_t seat) const;
  std::uint64_t sweep();
  std::uint64_t serve_waiting();
  [[nodiscard]] Result<bool> await_request(std::optional<std::chrono::milliseconds> limit);
  void serve_one(std::uint32_t seat);
  [[nodiscard]] Result<std::optional<std::int64_t>> handle(const ReceivedRequest& job) const;
  void look_at_seats(bool and_lives);
  void admit(std::uint32_t seat, std::uint64_t holder);
  void dismiss(std::uint32_t seat);
  void tell_of_leaving(std::uint32_t seat, std::uint64_t holder) const;
  void free_seat(std::uint32_t seat);

  Desk& desk_;
  DelegateeOptions options_;
  std::vector<Handler> handlers_;
  std::vector<Guest> guests_;            // one per seat
  std::vector<std::uint32_t> occupied_;  // seats with a guest
  std::uint32_t seen_changes_ = 0;
  CheckTimer timer_;
  std::atomic<bool> stopping_{false};
};

}  // namespace shima::delegate
