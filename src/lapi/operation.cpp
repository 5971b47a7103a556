#include "lapi/operation.h"

#include <utility>

#include "lapi/way/message.h"

namespace shima::lapi {
namespace {

constexpr bool is_used(std::uint32_t use) { return use % 2 != 0; }

}  // namespace

std::uint64_t Operations::add(Operation operation) {
  const std::lock_guard hold(mutex_);
  if (first_free_ == none) {
    places_.push_back({.next_free = none});
    first_free_ = static_cast<std::uint32_t>(places_.size() - 1);
  }
  const std::uint32_t number = first_free_;
  Place& place = places_[number];
  first_free_ = place.next_free;
  place.operation = std::move(operation);
  place.next_free = number;  // its own number, while it is used
  ++place.use;
  ++pending_;
  return std::uint64_t{place.use} << 32 | number;
}

Operations::Place* Operations::find(std::uint64_t ticket, int task) {
  const auto number = static_cast<std::uint32_t>(ticket);
  if (number >= places_.size()) return nullptr;
  Place& place = places_[number];
  const bool is_it = is_used(place.use) && place.use == ticket >> 32;
  return is_it && place.operation.task == task ? &place : nullptr;
}

Operation Operations::take_from(Place& place) {
  const std::uint32_t number = place.next_free;
  ++place.use;
  place.next_free = std::exchange(first_free_, number);
  --pending_;
  return std::move(place.operation);
}

std::optional<Operation> Operations::take(std::uint64_t ticket, int task) {
  const std::lock_guard hold(mutex_);
  Place* const place = find(ticket, task);
  return place == nullptr ? std::nullopt : std::optional(take_from(*place));
}

std::optional<Notices> Operations::note_done(std::uint64_t ticket, int task, std::uint8_t flags) {
  const std::lock_guard hold(mutex_);
  Place* const place = find(ticket, task);
  if (place == nullptr || place->operation.expected == 0) return {};
  Operation& operation = place->operation;
  flags = static_cast<std::uint8_t>(flags & operation.expected);
  Notices notices = operation.notices;
  if ((flags & origin_free) == 0) notices.origin = nullptr, notices.sent = nullptr;
  if ((flags & complete) == 0) notices.complete = nullptr;
  operation.expected = static_cast<std::uint8_t>(operation.expected & ~flags);
  if (operation.expected == 0) std::ignore = take_from(*place);
  return notices;
}

void Operations::abandon(const lapi_cntr_t& counter) {
  const std::lock_guard hold(mutex_);
  for (Place& place : places_)
    if (is_used(place.use) && place.operation.notices.complete == &counter)
      place.operation.notices.complete = nullptr;
  failed_.erase(&counter);
}

std::vector<Operation> Operations::fail(int task) {
  const std::lock_guard hold(mutex_);
  std::vector<Operation> failed;
  for (Place& place : places_) {
    if (!is_used(place.use) || place.operation.task != task) continue;
    note_failed(place.operation);
    failed.push_back(take_from(place));
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
  for (const Place& place : places_) {
    const Operation& operation = place.operation;
    if (is_used(place.use) &&
        (operation.notices.origin == &counter || operation.notices.complete == &counter) &&
        lives(operation.task))
      return true;
  }
  return false;
}

Pieces Operations::destination(std::uint64_t ticket, int task) {
  const std::lock_guard hold(mutex_);
  Place* const place = find(ticket, task);
  if (place == nullptr || place->operation.expected != 0) return Pieces(std::vector<Piece>{});
  return place->operation.destination;
}

}  // namespace shima::lapi
