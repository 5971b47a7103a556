// The calls for processes that create spaces and start tasks.
#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "capi/pvas/errors.h"
#include "pvas/launch/root_process.h"
#include "pvas/launch/spawn.h"
#include "pvas/task/membership.h"
#include "shima/pvas.h"

namespace {

// A task that several threads may wait for and send signals to.
struct Child {
  explicit Child(shima::pvas::StartedTask started) : task(std::move(started)) {}

  const shima::pvas::StartedTask task;
  std::timed_mutex turn;  // held by the thread that reads the root's messages
  std::optional<int> status;
};

}  // namespace

struct pvas_space {
  shima::pvas::WhichSpace which;
  shima::UniqueFd keeper;  // the root runs as long as this is open
  std::vector<std::uint8_t> cores;
  std::mutex mutex;
  std::map<int, std::shared_ptr<Child>> tasks;
};

namespace {

using shima::Code;
using shima::fail;
using shima::fail_errno;
using shima::Result;
using shima::Status;
using shima::capi::guarded_pvas;
using namespace shima::pvas;

constexpr int most_cores = 8192;
constexpr std::chrono::seconds time_to_leave{2};

Result<std::vector<std::uint8_t>> core_mask(const int* cores, std::size_t count) {
  std::vector<std::uint8_t> mask;
  for (std::size_t i = 0; i < count; ++i) {
    const int core = cores[i];
    if (core < 0 || core >= most_cores)
      return fail(Code::bad_argument,
                  "core " + std::to_string(core) + " is not between 0 and 8191");
    const auto at = static_cast<std::size_t>(core) / CHAR_BIT;
    if (at >= mask.size()) mask.resize((at / sizeof(long) + 1) * sizeof(long));
    mask[at] = static_cast<std::uint8_t>(mask[at] | 1U << (core % CHAR_BIT));
  }
  return mask;
}

std::vector<std::string> list_of(char* const* words) {
  std::vector<std::string> list;
  for (; *words != nullptr; ++words) list.emplace_back(*words);
  return list;
}

Status take_files(SpawnRequest& request, const pvas_program& program) {
  if (program.files == nullptr && program.file_count == 0) return {};
  if (program.files == nullptr)
    return fail(Code::bad_argument, "file_count is not 0, but files is NULL");
  request.files.clear();
  for (std::size_t i = 0; i < program.file_count; ++i) {
    if (program.files[i].there < 0 || ::fcntl(program.files[i].here, F_GETFD) < 0)
      return fail(Code::bad_argument, "a file for the task is not an open descriptor");
    request.files.push_back({program.files[i].here, program.files[i].there});
  }
  return {};
}

Result<SpawnRequest> request_for(const pvas_space& space, const pvas_program& program) {
  const std::vector<std::string> arguments = program.arguments != nullptr
                                                 ? list_of(program.arguments)
                                                 : std::vector<std::string>{program.file};
  SHIMA_TRY_ASSIGN(const Program found, find_program(program.file, arguments));
  SHIMA_TRY_ASSIGN(SpawnRequest request, like_this_process(found));
  if (program.environment != nullptr) request.order.environment = list_of(program.environment);
  if (program.folder != nullptr) {
    request.directory = shima::UniqueFd(::open(program.folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!request.directory) return fail_errno(errno, std::string("opening ") + program.folder);
  }
  SHIMA_TRY(take_files(request, program));
  if (!space.cores.empty()) request.order.cpus = space.cores;
  if (program.core_count > 0) {
    SHIMA_TRY_ASSIGN(request.order.cpus, core_mask(program.cores, program.core_count));
  }
  return request;
}

Result<std::shared_ptr<Child>> child_of(pvas_space* space, int task) {
  if (space == nullptr) return fail(Code::bad_argument, "no space");
  const std::lock_guard hold(space->mutex);
  const auto found = space->tasks.find(task);
  if (found == space->tasks.end())
    return fail(Code::peer_lost, "no task " + std::to_string(task) + " was started here");
  return found->second;
}

using Clock = std::chrono::steady_clock;
using Limit = std::optional<Clock::time_point>;

Limit limit_of(int timeout_ms) {
  if (timeout_ms < 0) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(timeout_ms);
}

std::optional<std::chrono::milliseconds> left_until(const Limit& limit) {
  if (!limit) return std::nullopt;
  return std::max(std::chrono::milliseconds{0},
                  std::chrono::ceil<std::chrono::milliseconds>(*limit - Clock::now()));
}

// The status of a task that ends before the limit.
Result<std::optional<int>> end_of(Child& child, const Limit& limit) {
  std::unique_lock hold(child.turn, std::defer_lock);
  if (!limit) {
    hold.lock();
  } else if (!hold.try_lock_until(*limit)) {
    return std::nullopt;
  }
  while (!child.status) {
    SHIMA_TRY_ASSIGN(const auto change, child.task.next_change(left_until(limit)));
    if (change && change->turn == Turn::ended) child.status = change->status;
    if (!change && limit && Clock::now() >= *limit) break;
  }
  return child.status;
}

// A connection that keeps the root running.
Result<shima::UniqueFd> keeper_of(const WhichSpace& which, bool make) {
  auto socket = make ? connect_or_make_root(which) : connect_root(which.socket_name);
  if (!socket) return socket;
  SHIMA_TRY(keep_root(*socket));
  return socket;
}

Result<std::unique_ptr<pvas_space>> keep(WhichSpace which, bool make) {
  auto space = std::make_unique<pvas_space>();
  space->which = std::move(which);
  const auto deadline = Clock::now() + time_to_leave;
  auto keeper = keeper_of(space->which, make);
  // The root of this name may be exiting; then the next one is started here.
  while (make && !keeper && keeper.error().code == Code::peer_lost && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
    keeper = keeper_of(space->which, make);
  }
  if (!keeper) return std::unexpected(keeper.error());
  space->keeper = std::move(*keeper);
  return space;
}

Status judge_options(const pvas_options& options) {
  if (options.slices < 0 || options.slices > max_slices || options.slice < 0 ||
      options.slice >= std::max(options.slices, 1))
    return fail(Code::bad_argument, "the slice is not one of the slices (0 to slices - 1)");
  if (options.core_count > 0 && options.cores == nullptr)
    return fail(Code::bad_argument, "core_count is not 0, but cores is NULL");
  if (options.group == nullptr) return {};
  if (options.slices < 2)
    return fail(Code::bad_argument, "a space of a group needs slices > 1 in its options");
  return judge_name(options.group);
}

WhichSpace wanted_space(const pvas_options& options) {
  const int slices = std::max(options.slices, 1);
  const std::string group = options.group != nullptr ? options.group : "";
  return {.socket_name = group.empty() ? socket_name_for(random_key())
                                       : group_space_name(group, options.slice, slices),
          .slice = options.slice,
          .slices = slices,
          .group = group,
          .eager = options.eager != 0};
}

}  // namespace

int pvas_create(const pvas_options* options, pvas_space** space) noexcept {
  return guarded_pvas([&]() -> Status {
    if (space == nullptr) return fail(Code::bad_argument, "no place for the space");
    const pvas_options wanted = options != nullptr ? *options : pvas_options{};
    SHIMA_TRY(judge_options(wanted));
    SHIMA_TRY_ASSIGN(auto made, keep(wanted_space(wanted), true));
    SHIMA_TRY_ASSIGN(made->cores, core_mask(wanted.cores, wanted.core_count));
    *space = made.release();
    return {};
  });
}

int pvas_own(pvas_space** space) noexcept {
  return guarded_pvas([&]() -> Status {
    if (space == nullptr) return fail(Code::bad_argument, "no place for the space");
    const auto membership = Membership::own();
    if (!membership) return fail(Code::bad_handle, "this process is not a task of a space");
    SHIMA_TRY_ASSIGN(auto made,
                     keep({.socket_name = membership->space_state().socket_name.data()}, false));
    *space = made.release();
    return {};
  });
}

int pvas_spawn(pvas_space* space, const pvas_program* program, int* task) noexcept {
  return guarded_pvas([&]() -> Status {
    if (space == nullptr || program == nullptr || program->file == nullptr || task == nullptr)
      return fail(Code::bad_argument,
                  "starting a task: the space, the program or the result pointer is NULL");
    SHIMA_TRY_ASSIGN(const SpawnRequest request, request_for(*space, *program));
    SHIMA_TRY_ASSIGN(shima::UniqueFd socket, connect_root(space->which.socket_name));
    SHIMA_TRY_ASSIGN(StartedTask started, StartedTask::start(std::move(socket), request));
    const int number = started.id();
    const std::lock_guard hold(space->mutex);
    space->tasks[number] = std::make_shared<Child>(std::move(started));
    *task = number;
    return {};
  });
}

int pvas_wait(pvas_space* space, int task, int timeout_ms, int* status) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto child, child_of(space, task));
    SHIMA_TRY_ASSIGN(const std::optional<int> ended, end_of(*child, limit_of(timeout_ms)));
    if (!ended) return fail(Code::timed_out, "task " + std::to_string(task) + " has not ended");
    if (status != nullptr) *status = *ended;
    const std::lock_guard hold(space->mutex);
    const auto found = space->tasks.find(task);  // a new task may have reused the number
    if (found != space->tasks.end() && found->second == child) space->tasks.erase(found);
    return {};
  });
}

int pvas_signal(pvas_space* space, int task, int signal) noexcept {
  return guarded_pvas([&]() -> Status {
    SHIMA_TRY_ASSIGN(const auto child, child_of(space, task));
    if (signal < 0 || signal > 64)
      return fail(Code::bad_argument, "there is no signal " + std::to_string(signal));
    return child->task.signal(signal);
  });
}

pid_t pvas_process(pvas_space* space, int task) noexcept {
  return guarded_pvas([&]() -> Result<pid_t> {
    SHIMA_TRY_ASSIGN(const auto child, child_of(space, task));
    return child->task.pid();
  });
}

void pvas_destroy(pvas_space* space) noexcept { delete space; }
