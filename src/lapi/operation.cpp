#include "lapi/operation.h"

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
    for (const lapi_cntr_t* counter : {at->second.notices.origin, at->second.notices.complete})
      if (counter != nullptr) failed_.insert(counter);
    failed.push_back(std::move(at->second));
    at = pending_.erase(at);
  }
  return failed;
}

}  // namespace shima::lapi
