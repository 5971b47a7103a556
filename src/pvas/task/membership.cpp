#include "pvas/task/membership.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;

// A sleeper checks again after this time: its waker may have been killed.
constexpr std::chrono::seconds longest_sleep{1};

}  // namespace

std::optional<Membership> Membership::own() {
  auto* const control = reinterpret_cast<Control*>(::getauxval(aux_control));
  // A child made by fork has a copy of everything, but is another process.
  if (control == nullptr || control->magic != control_magic ||
      control->space_state->places[static_cast<std::size_t>(control->task)].pid != ::getpid())
    return std::nullopt;
  return Membership(control);
}

Status Membership::must_be_task(int task) const {
  const bool possible = task >= 0 && static_cast<std::uint64_t>(task) < space_state().task_limit;
  if (possible && space_state().places[static_cast<std::size_t>(task)].state == PlaceState::running)
    return {};
  return fail(Code::peer_lost, "there is no task " + std::to_string(task));
}

std::vector<int> Membership::tasks() const {
  std::vector<int> there;
  for (std::uint64_t task = 0; task < space_state().task_limit; ++task)
    if (space_state().places[task].state == PlaceState::running)
      there.push_back(static_cast<int>(task));
  return there;
}

Result<MemoryRange> Membership::partition(int task) const {
  if (task < 0 || static_cast<std::uint64_t>(task) >= space_state().task_limit)
    return fail(Code::bad_argument, "there can be no task " + std::to_string(task));
  return MemoryRange{space_state().first_partition +
                         static_cast<std::uint64_t>(task) * space_state().partition_size,
                     space_state().partition_size};
}

Result<pid_t> Membership::process(int task) const {
  SHIMA_TRY(must_be_task(task));
  return space_state().places[static_cast<std::size_t>(task)].pid.load();
}

std::optional<int> Membership::owner(std::uint64_t address) const {
  if (address < space_state().first_partition) return {};
  const std::uint64_t task =
      (address - space_state().first_partition) / space_state().partition_size;
  if (task >= space_state().task_limit || space_state().places[task].state != PlaceState::running)
    return {};
  return static_cast<int>(task);
}

std::uint32_t Membership::number_in_group() const {
  return shared_number(space_state().incarnation, task());
}

// A sleeper waits on one word: the group's if there is a group.
Status Membership::show(const std::string& name, MemoryRange memory) const {
  SpaceState& space_state = *control_->space_state;
  if (space_state.commons == nullptr) return space_state.names.show(number(), name, memory);
  if (is_shared(memory)) return space_state.commons->names.show(number_in_group(), name, memory);
  SHIMA_TRY(space_state.names.show(number(), name, memory));
  space_state.commons->names.announce();
  return {};
}

Status Membership::hide(const std::string& name) const {
  SpaceState& space_state = *control_->space_state;
  const Status here = space_state.names.hide(number(), name);
  if (here || space_state.commons == nullptr) return here;
  return space_state.commons->names.hide(number_in_group(), name);
}

Result<std::optional<Imported>> Membership::look_for(const std::string& name) const {
  SpaceState& space_state = *control_->space_state;
  SHIMA_TRY_ASSIGN(const auto here, space_state.names.find(number(), name));
  if (here) return Imported{here->memory, static_cast<int>(here->owner) - 1};
  if (space_state.commons == nullptr) return std::nullopt;
  SHIMA_TRY_ASSIGN(const auto shared, space_state.commons->names.find(number_in_group(), name));
  if (!shared) return std::nullopt;
  Imported imported{shared->memory, std::nullopt};
  if (shared->owner / incarnation_factor == space_state.incarnation)
    imported.owner = static_cast<int>(shared->owner % incarnation_factor) - 1;
  return imported;
}

Result<Imported> Membership::find(const std::string& name,
                                  std::optional<std::chrono::milliseconds> limit) const {
  SHIMA_TRY(judge_name(name));
  SpaceState& space_state = *control_->space_state;
  const FutexWord& changed =
      (space_state.commons != nullptr ? space_state.commons->names : space_state.names).changed;
  const auto begun = Clock::now();
  for (;;) {
    const std::uint32_t seen = changed;
    SHIMA_TRY_ASSIGN(const auto found, look_for(name));
    if (found) return *found;
    const Clock::duration left = limit ? *limit - (Clock::now() - begun) : longest_sleep;
    if (left <= Clock::duration::zero())
      return fail(Code::timed_out, "no task exports memory named " + name);
    const auto sleep = std::chrono::ceil<std::chrono::microseconds>(
        std::min<Clock::duration>(left, longest_sleep));
    futex_wait(changed, seen, static_cast<std::uint32_t>(sleep.count()));
  }
}

Result<Commons*> Membership::commons() const {
  if (space_state().commons != nullptr) return space_state().commons;
  return fail(Code::bad_handle, "this space is in no group that shares memory");
}

Result<std::vector<int>> Membership::spaces() const {
  SHIMA_TRY_ASSIGN(const Commons* const group, commons());
  std::vector<int> there;
  for (int slice = 0; slice < max_slices; ++slice)
    if (group->members[static_cast<std::size_t>(slice)].incarnation != 0) there.push_back(slice);
  return there;
}

// Counts the hold before it reads the state; the root marks the end before it reads the counts.
Status Membership::hold(int other) const {
  SHIMA_TRY(must_be_task(other));
  auto& count = control_->space_state
                    ->holds[static_cast<std::size_t>(other)][static_cast<std::size_t>(task())];
  std::uint16_t held = count.load();
  do {
    if (held == std::numeric_limits<std::uint16_t>::max())
      return fail(Code::no_memory, "task " + std::to_string(other) + " is held too often");
  } while (!count.compare_exchange_weak(held, static_cast<std::uint16_t>(held + 1)));
  const Status there = must_be_task(other);
  if (!there) count.fetch_sub(1);
  return there;
}

Status Membership::release(int other) const {
  if (other < 0 || static_cast<std::uint64_t>(other) >= space_state().task_limit)
    return fail(Code::bad_argument, "there can be no task " + std::to_string(other));
  auto& count = control_->space_state
                    ->holds[static_cast<std::size_t>(other)][static_cast<std::size_t>(task())];
  std::uint16_t now = count.load();
  while (now > 0 && !count.compare_exchange_weak(now, static_cast<std::uint16_t>(now - 1))) {
  }
  if (now == 0) return fail(Code::bad_argument, "task " + std::to_string(other) + " is not held");
  return {};
}

}  // namespace shima::pvas
