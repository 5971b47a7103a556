#include "iod/fair_queue.h"

#include <algorithm>

namespace shima::iod {
namespace {

// Calls admits(value) for the entries after `last`, around the map, until one says true; `last`
// becomes its key.
template <class Value, class Admits>
bool find_in_turn(std::map<std::string, Value>& all, std::string& last, Admits admits) {
  auto at = all.upper_bound(last);
  for (std::size_t tried = 0; tried < all.size(); ++tried, ++at) {
    if (at == all.end()) at = all.begin();
    if (!admits(at->second)) continue;
    last = at->first;
    return true;
  }
  return false;
}

}  // namespace

FairQueue::Place FairQueue::enter(const Process& process) {
  std::unique_lock hold(mutex_);
  User& user = users_[process.user];
  Line& line = user.lines[process.name];
  if (line.waiting.empty() && has_room(user) && has_room(line)) {
    --free_;
    ++user.under_way;
    ++line.under_way;
    return {*this, process};
  }
  Waiter waiter;
  // What may fail comes before the waiter is known to others.
  last_.reserve(process.user.size());
  user.last.reserve(process.name.size());
  line.waiting.push_back(&waiter);
  ++user.waiting;
  ++waiting_;
  admit_waiting();
  waiter.admitted.wait(hold, [&] { return waiter.is_admitted; });
  return {*this, process};
}

void FairQueue::leave(const Process& process) {
  const std::lock_guard hold(mutex_);
  const auto user = users_.find(process.user);
  const auto line = user->second.lines.find(process.name);
  ++free_;
  --user->second.under_way;
  --line->second.under_way;
  if (waiting_ > 0) admit_waiting();
  if (line->second.under_way > 0 || !line->second.waiting.empty()) return;
  user->second.lines.erase(line);
  if (user->second.lines.empty()) users_.erase(user);
}

void FairQueue::admit_waiting() {
  while (free_ > 0 && waiting_ > 0 && admit_next_user()) {
  }
}

bool FairQueue::admit_next_user() {
  return find_in_turn(users_, last_, [&](User& user) {
    return user.waiting > 0 && has_room(user) && admit_next_process(user);
  });
}

bool FairQueue::admit_next_process(User& user) {
  return find_in_turn(user.lines, user.last, [&](Line& line) {
    if (line.waiting.empty() || !has_room(line)) return false;
    Waiter& first = *line.waiting.front();
    line.waiting.pop_front();
    --free_;
    --user.waiting;
    --waiting_;
    ++user.under_way;
    ++line.under_way;
    first.is_admitted = true;
    first.admitted.notify_one();
    return true;
  });
}

FairQueue::Load FairQueue::load() {
  const std::lock_guard hold(mutex_);
  return {places_ - free_, waiting_};
}

}  // namespace shima::iod
