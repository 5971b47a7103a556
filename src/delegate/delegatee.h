// Who carries out what requesters ask for.
//
// serve() goes round the requesters, one request of each at a time, and answers. What is done for
// an operation says a table of handlers. A handler that cannot answer yet keeps the Job and answers
// by finish(), from any thread. A requester that dies loses its seat once all it asked for is
// answered; the others do not notice.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "delegate/desk.h"
#include "delegate/life.h"

namespace shima::delegate {

// A request, as its handler sees it.
struct Job {
  int operation = 0;
  std::array<std::int64_t, 3> arguments{};
  std::span<std::byte> payload;  // in the requester's memory or in the slot
  Holder requester;
  std::uint32_t seat = 0;
  Slot* slot = nullptr;
};

// A value for the requester; none: finish() will be called.
using Handler = std::function<Result<std::optional<std::int64_t>>(const Job&)>;

struct DelegateeOptions {
  std::uint32_t seats = 64;
  std::uint32_t spin_us = 0;
  // Called before the first request of a requester is looked at, and after its last; may be empty.
  // An error of `admit` is one of all the requester's calls.
  std::function<Status(const Holder&)> admit;
  std::function<void(const Holder&)> dismiss;
};

class Delegatee {
 public:
  [[nodiscard]] static std::size_t memory_needed(std::uint32_t seats) {
    return Desk::len_bytes(seats);
  }
  // `memory`: zero bytes that the requesters share, as many as needed, on a cache line. It must
  // stay for as long as requesters look at it, even after the delegatee is gone.
  [[nodiscard]] static Result<std::unique_ptr<Delegatee>> open(std::span<std::byte> memory,
                                                               DelegateeOptions options);
  Delegatee(const Delegatee&) = delete;
  Delegatee& operator=(const Delegatee&) = delete;
  // What is not answered by now, requesters get an error for. All jobs must be finished.
  ~Delegatee();

  // Before serving. An operation that nobody handles is an error of its requester. The handler of
  // operation_left is called once it is seen that a requester has left or ended.
  [[nodiscard]] Status offer(int operation, Handler handler);

  // Serves until stop(), or until nobody has asked for `limit` (none: for ever), and says how many
  // requests it was. By one thread at a time.
  [[nodiscard]] Result<std::uint64_t> serve(std::optional<std::chrono::milliseconds> limit);
  // Waits for requests for no longer than `limit`, serves those that there are, and returns: for
  // who has something else to look after.
  [[nodiscard]] Result<std::uint64_t> serve_some(std::optional<std::chrono::milliseconds> limit);
  // Ends serve(), or the next one. From any thread, also from a signal handler.
  void stop();
  void finish(const Job& job, const Result<std::int64_t>& answer);

 private:
  struct Guest {
    std::uint64_t holder = 0;  // 0: none
    Life life;
    bool is_leaving = false;                  // or has ended
    std::size_t next = 0;                     // where its next request will be
    std::atomic<std::uint32_t> under_way{0};  // a bit for each slot whose request is not answered
  };

  Delegatee(Desk& desk, DelegateeOptions options);
  [[nodiscard]] bool something_waits() const;
  [[nodiscard]] bool has_request(std::uint32_t seat) const;
  std::uint64_t sweep();
  std::uint64_t serve_waiting();
  [[nodiscard]] Result<bool> await_request(std::optional<std::chrono::milliseconds> limit);
  void serve_one(std::uint32_t seat);
  [[nodiscard]] Result<std::optional<std::int64_t>> handle(const Job& job) const;
  void look_at_seats(bool and_lives);
  void admit(std::uint32_t seat, std::uint64_t holder);
  void dismiss(std::uint32_t seat);
  void tell_of_leaving(std::uint32_t seat, std::uint64_t holder) const;
  void free_seat(std::uint32_t seat);

  Desk& desk_;
  DelegateeOptions options_;
  std::vector<Handler> handlers_;
  std::vector<Guest> guests_;            // one a seat
  std::vector<std::uint32_t> occupied_;  // seats with a guest
  std::uint32_t seen_changes_ = 0;
  CheckTimer timer_;
  std::atomic<bool> stopping_{false};
};

}  // namespace shima::delegate
