// What the origin of an operation wants to be told, and the operations that wait for a reply.
#pragma once

#include <lapi.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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
class Operations {
 public:
  [[nodiscard]] std::uint64_t add(Operation operation) {
    const std::lock_guard hold(mutex_);
    pending_.emplace(++last_ticket_, std::move(operation));
    return last_ticket_;
  }
  // Takes an operation out, if `task` is its target.
  [[nodiscard]] std::optional<Operation> take(std::uint64_t ticket, int task) {
    const std::lock_guard hold(mutex_);
    const auto found = pending_.find(ticket);
    if (found == pending_.end() || found->second.task != task) return {};
    std::optional<Operation> taken(std::move(found->second));
    pending_.erase(found);
    return taken;
  }
  // Notes flags of `done`; returns the notices of which to tell, of `flags` alone.
  [[nodiscard]] std::optional<Notices> note_done(std::uint64_t ticket, int task,
                                                 std::uint8_t flags);
  // Takes out all operations on a task. Their counters will not grow.
  [[nodiscard]] std::vector<Operation> fail(int task);
  // Whether an operation that failed names the counter; until it is set again.
  [[nodiscard]] bool has_failed(const lapi_cntr_t& counter) {
    const std::lock_guard hold(mutex_);
    return failed_.contains(&counter);
  }
  void forget_failure(const lapi_cntr_t& counter) {
    const std::lock_guard hold(mutex_);
    if (!failed_.empty()) failed_.erase(&counter);
  }
  [[nodiscard]] bool names(const lapi_cntr_t& counter) {
    const std::lock_guard hold(mutex_);
    for (const auto& [ticket, operation] : pending_)
      if (operation.notices.origin == &counter || operation.notices.complete == &counter)
        return true;
    return false;
  }
  // Lets no operation make the counter grow any more.
  void abandon(const lapi_cntr_t& counter);
  [[nodiscard]] bool empty() {
    const std::lock_guard hold(mutex_);
    return pending_.empty();
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ticket_ = 0;
  std::unordered_map<std::uint64_t, Operation> pending_;
  std::unordered_set<const lapi_cntr_t*> failed_;
};

}  // namespace shima::lapi
