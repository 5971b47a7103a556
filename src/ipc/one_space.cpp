#include "ipc/one_space.h"

#include <unistd.h>

#include <optional>
#include <tuple>

#include "pvas/task/membership.h"

namespace shima {

using pvas::Membership;

SpacePlace own_space_place() {
  const auto self = Membership::own();
  if (!self) return {};
  return {reinterpret_cast<std::uintptr_t>(&self->space_state()), self->space_state().root_pid,
          self->task()};
}

bool HeldTasks::hold(const SpacePlace& place, pid_t pid) {
  if (pid == ::getpid()) return true;
  const auto self = Membership::own();
  const SpacePlace own = own_space_place();
  if (!self || place.space != own.space || place.root_pid != own.root_pid) return false;
  tasks_.reserve(tasks_.size() + 1);  // no exception between the hold and its entry
  if (!self->hold(place.task)) return false;
  tasks_.push_back(place.task);
  // The number may have been reused before the hold was taken.
  const auto process = self->process(place.task);
  return process && *process == pid;
}

void HeldTasks::release() {
  // A forked child has no holds to release.
  if (const auto self = Membership::own())
    for (const int task : tasks_) std::ignore = self->release(task);
  tasks_.clear();
}

}  // namespace shima
