#include "pvas/root/server/space.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

namespace shima::pvas {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
constexpr std::uint64_t partition_bytes = 128 * gib;

const char* words_for(EntryStep step) {
  switch (step) {
    case EntryStep::parent:
      return "the space has ended";
    case EntryStep::directory:
      return "entering its working directory";
    case EntryStep::files:
      return "moving its files to their numbers";
    case EntryStep::origin:
      return "keeping its program open";
    case EntryStep::signals:
      return "setting its signals";
    case EntryStep::affinity:
      return "binding it to its cores";
    default:
      return "preparing its start";
  }
}

// Whether a process has executed another program. If its first thread has ended, this cannot be
// seen, and it has not.
bool has_left(pid_t pid) {
  struct stat own{};
  struct stat other{};
  const std::string link = "/proc/" + std::to_string(pid) + "/exe";
  return ::stat("/proc/self/exe", &own) == 0 && ::stat(link.c_str(), &other) == 0 &&
         (own.st_dev != other.st_dev || own.st_ino != other.st_ino);
}

}  // namespace

Result<Space> Space::make(Slice slice, const std::string& socket_name) {
  void* const memory = ::mmap(nullptr, sizeof(SpaceState), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "allocating memory for a space");
  auto* const space_state = new (memory) SpaceState;
  const std::uint64_t slice_bytes = region_bytes / static_cast<std::uint64_t>(slice.count);
  space_state->root_pid = ::getpid();
  space_state->slice = slice.index;
  std::strncpy(space_state->socket_name.data(), socket_name.c_str(),
               space_state->socket_name.size() - 1);
  space_state->first_partition =
      region_begin + static_cast<std::uint64_t>(slice.index) * slice_bytes;
  space_state->partition_size = partition_bytes;
  space_state->task_limit = std::min<std::uint64_t>(max_tasks, slice_bytes / partition_bytes);
  return Space(space_state);
}

Result<int> Space::find_place() {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::uint64_t place = 0; place < space_state_->task_limit; ++place) {
      settle(static_cast<int>(place));  // the last release is not reported
      if (space_state_->places[place].state.load() == PlaceState::free)
        return static_cast<int>(place);
    }
    sweep();
  }
  return fail(Code::no_memory,
              "the space is full: it has " + std::to_string(space_state_->task_limit) + " tasks",
              EAGAIN);
}

Result<Started> Space::start(const SpawnOrder& order, const UniqueFd& directory,
                             const std::vector<TaskFile>& files) {
  SHIMA_TRY_ASSIGN(const int place, find_place());
  const auto at = static_cast<std::size_t>(place);
  keeping_[at] = {.mapped = true, .named = false};
  space_state_->places[at].state = PlaceState::ended;  // until there is a process
  auto made = fill_partition(*space_state_, place, order, files);
  if (!made) {
    settle(place);
    return std::unexpected(made.error());
  }
  made->entry->directory_fd = directory.get();
  made->entry->place = &space_state_->places[at];
  made->entry->origin_fd = made->program.get();
  made->entry->origin_at = made->origin_number;
  const long pid = start_task(made->entry);
  if (pid < 0) {
    settle(place);
    return fail_errno(static_cast<int>(-pid), "creating a process");
  }
  keeping_[at].named = true;
  // The process publishes its ID too, but perhaps later than it is read.
  Place& seen = space_state_->places[at];
  seen.pid = static_cast<std::int32_t>(pid);
  seen.state = PlaceState::running;
  tasks_.emplace(static_cast<pid_t>(pid), Task{place, made->entry});
  return Started{place, static_cast<pid_t>(pid)};
}

bool Space::is_held(int place) const {
  const auto& holders = space_state_->holds[static_cast<std::size_t>(place)];
  return std::ranges::any_of(holders, [](const auto& count) { return count.load() != 0; });
}

// Advances the place of a task that has exited: its memory is freed, by one call, when no task
// holds it; then, when its number is released, the place is free.
void Space::settle(int place) {
  const auto at = static_cast<std::size_t>(place);
  if (space_state_->places[at].state != PlaceState::ended) return;
  if (keeping_[at].mapped && !is_held(place)) {
    ::munmap(reinterpret_cast<void*>(partition_address(*space_state_, place)),
             space_state_->partition_size);
    keeping_[at].mapped = false;
  }
  if (!keeping_[at].mapped && !keeping_[at].named)
    space_state_->places[at].state = PlaceState::free;
}

void Space::let_go(int place) {
  keeping_[static_cast<std::size_t>(place)].named = false;
  settle(place);
}

// Removes the names and holds of a task that has exited.
void Space::forget(int place) {
  const auto number = static_cast<std::uint32_t>(place) + 1;
  space_state_->names.forget(number, number);
  if (space_state_->commons != nullptr) {
    const std::uint32_t in_group = shared_number(space_state_->incarnation, place);
    space_state_->commons->names.forget(in_group, in_group);
  }
  for (auto& holders : space_state_->holds) holders[static_cast<std::size_t>(place)] = 0;
}

void Space::leave_place(Task& task) {
  if (!task.place) return;
  const int place = *task.place;
  task.place.reset();
  forget(place);
  // Sets the state before it reads the holds; a holder does it in the opposite order.
  space_state_->places[static_cast<std::size_t>(place)].state = PlaceState::ended;
  settle(place);
}

std::vector<Change> Space::take_changes() {
  std::vector<Change> changes;
  int status = 0;
  for (;;) {
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid <= 0) return changes;
    const auto found = tasks_.find(pid);
    if (found == tasks_.end()) continue;
    Change change{pid, status, {}};
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      Task& task = found->second;
      if (task.place && task.order->failed != EntryStep::none &&
          task.order->failed != EntryStep::done)
        change.failure = std::string(words_for(task.order->failed)) + ": " +
                         std::strerror(task.order->failed_errno);
      leave_place(task);
      tasks_.erase(found);
    }
    changes.push_back(std::move(change));
  }
}

void Space::sweep() {
  for (auto& [pid, task] : tasks_)
    if (task.place && has_left(pid)) leave_place(task);
  for (std::uint64_t place = 0; place < space_state_->task_limit; ++place)
    settle(static_cast<int>(place));
}

void Space::signal(pid_t pid, int number) const {
  if (tasks_.contains(pid)) ::kill(pid, number);
}

}  // namespace shima::pvas
