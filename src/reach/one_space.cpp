#include "reach/one_space.h"

#include <unistd.h>

#include <optional>
#include <tuple>

#include "pvas/membership.h"

namespace shima {
namespace {

const std::optional<pvas::Membership>& own_membership() {
  static const std::optional<pvas::Membership> own = pvas::Membership::own();
  return own;
}

}  // namespace

SpacePlace own_space_place() {
  const auto& self = own_membership();
  if (!self) return {};
  return {reinterpret_cast<std::uintptr_t>(&self->board()), self->board().root_pid, self->task()};
}

bool HeldTasks::hold(const SpacePlace& place, pid_t pid) {
  if (pid == ::getpid()) return true;
  const SpacePlace own = own_space_place();
  if (own.space == 0 || place.space != own.space || place.root_pid != own.root_pid) return false;
  const auto& self = own_membership();
  if (!self->hold(place.task)) return false;
  tasks_.push_back(place.task);
  // Its number may have been another's before it was held.
  const auto process = self->process(place.task);
  return process && *process == pid;
}

void HeldTasks::release() {
  for (const int task : tasks_) std::ignore = own_membership()->release(task);
  tasks_.clear();
}

}  // namespace shima
