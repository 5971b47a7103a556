// What the origin of an operation wants to be told, and the operations that wait for a reply.
#pragma once

#include <lapi.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/process/biased_mutex.h"
#include "lapi/way/pieces.h"

namespace shima::lapi {

struct Notices {
  lapi_cntr_t* origin = nullptr;
  lapi_cntr_t* complete = nullptr;
  scompl_hndlr_t* sent = nullptr;  // with `origin`
  void* sent_info = nullptr;
  compl_hndlr_t* arrived = nullptr;  // the data of a Get
  void* arrived_info = nullptr;
};

struct Operation {
  int task = 0;
  std::uint8_t expected = 0;  // flags of `done` that have not come yet; 0: another reply
  Notices notices;
  Pieces destination{};      // get
  void* previous = nullptr;  // rmw
  std::uint32_t size_bits = 0;
};

// The operations that wait for replies, by ticket. Thread-safe.
//
// A ticket is the place of an operation in a table and how often the place has been used, so that
// a late or malformed reply finds nothing.
class Operations {
 public:
  [[nodiscard]] std::uint64_t add(Operation operation);
  // Takes an operation out, if `task` is its target.
  [[nodiscard]] std::optional<Operation> take(std::uint64_t ticket, int task);
  // Notes flags of `done`; returns the notices of which to tell, of `flags` alone.
  [[nodiscard]] std::optional<Notices> note_done(std::uint64_t ticket, int task,
                                                 std::uint8_t flags);
  // Where the data of a reply goes: no pieces if nothing has asked for it.
  [[nodiscard]] Pieces destination(std::uint64_t ticket, int task);
  // Takes out all operations on a task. Their counters will not grow.
  [[nodiscard]] std::vector<Operation> fail(int task);
  // The same with one operation.
  [[nodiscard]] std::optional<Operation> fail(std::uint64_t ticket, int task);
  void note_failure(const lapi_cntr_t* counter, int task) {
    const std::lock_guard hold(mutex_);
    if (counter != nullptr) failed_[counter] = task;
  }
  // The task of an operation that failed and names the counter, until that is forgotten.
  [[nodiscard]] std::optional<int> failed_on(const lapi_cntr_t& counter) {
    const std::lock_guard hold(mutex_);
    const auto found = failed_.find(&counter);
    return found == failed_.end() ? std::nullopt : std::optional(found->second);
  }
  void forget_failure(const lapi_cntr_t& counter) {
    const std::lock_guard hold(mutex_);
    failed_.erase(&counter);
  }
  // Whether an operation on a task that `lives` names the counter.
  [[nodiscard]] bool names(const lapi_cntr_t& counter, FunctionRef<bool(int)> lives);
  // Lets no operation make the counter grow any more.
  void abandon(const lapi_cntr_t& counter);
  [[nodiscard]] bool empty() {
    const std::lock_guard hold(mutex_);
    return pending_ == 0;
  }

 private:
  struct Place {
    Operation operation{};
    std::uint32_t use = 0;  // odd: an operation waits here
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t none = UINT32_MAX;

  void note_failed(const Operation& operation);
  // These need mutex_.
  [[nodiscard]] Place* find(std::uint64_t ticket, int task);
  [[nodiscard]] Operation take_from(Place& place);

  BiasedMutex mutex_;
  std::deque<Place> places_;
  std::uint32_t first_free_ = none;
  std::size_t pending_ = 0;
  std::unordered_map<const lapi_cntr_t*, int> failed_;
};

}  // namespace shima::lapi
