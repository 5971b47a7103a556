#include "lapi/operation.h"

#include <algorithm>

#include "lapi/way/message.h"

namespace shima::lapi {

std::optional<Notices> Operations::note_done(std::uint64_t ticket, int task, std::uint8_t flags) {
  const std::lock_guard hold(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end() || found->second.task != task || found->second.expected == 0)
    return {};
  Operation& operation = found->second;
  flags = static_cast<std::uint8_t>(flags & operation.expected);
  Notices notices = operation.notices;
  if ((flags & origin_free) == 0) notices.origin = nullptr, notices.sent = nullptr;
  if ((flags & complete) == 0) notices.complete = nullptr;
  operation.expected = static_cast<std::uint8_t>(operation.expected & ~flags);
  if (operation.expected == 0) pending_.erase(found);
  return notices;
}

void Operations::abandon(const lapi_cntr_t& counter) {
  const std::lock_guard hold(mutex_);
  for (auto& [ticket, operation] : pending_)
    if (operation.notices.complete == &counter) operation.notices.complete = nullptr;
  failed_.erase(&counter);
}

std::vector<Operation> Operations::fail(int task) {
  const std::lock_guard hold(mutex_);
  std::vector<Operation> failed;
  for (auto at = pending_.begin(); at != pending_.end();) {
    if (at->second.task != task) {
      ++at;
      continue;
    }
    note_failed(at->second);
    failed.push_back(std::move(at->second));
    at = pending_.erase(at);
  }
  return failed;
}

std::optional<Operation> Operations::fail(std::uint64_t ticket, int task) {
  std::optional<Operation> failed = take(ticket, task);
  const std::lock_guard hold(mutex_);
  if (failed) note_failed(*failed);
  return failed;
}

void Operations::note_failed(const Operation& operation) {
  for (const lapi_cntr_t* counter : {operation.notices.origin, operation.notices.complete})
    if (counter != nullptr) failed_[counter] = operation.task;
}

bool Operations::names(const lapi_cntr_t& counter, FunctionRef<bool(int)> lives) {
  const std::lock_guard hold(mutex_);
  return std::ranges::any_of(pending_, [&](const auto& pending) {
    const Operation& operation = pending.second;
    return (operation.notices.origin == &counter || operation.notices.complete == &counter) &&
           lives(operation.task);
  });
}

Pieces Operations::destination(std::uint64_t ticket, int task) {
  const std::lock_guard hold(mutex_);
  const auto found = pending_.find(ticket);
  if (found == pending_.end() || found->second.task != task || found->second.expected != 0)
    return Pieces(std::vector<Piece>{});
  return found->second.destination;
}

}  // namespace shima::lapi
