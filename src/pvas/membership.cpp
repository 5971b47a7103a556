#include "pvas/membership.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t slice_us = 2000;
// A task that was stopped while it had the lock; one that ended is noticed by the root.
constexpr std::chrono::seconds longest_wait{30};

// The board's lock, for as long as this lives.
class Locked {
 public:
  [[nodiscard]] static Result<Locked> take(Board& board, int task) {
    const auto own = static_cast<std::uint32_t>(task) + 1;
    const auto deadline = Clock::now() + longest_wait;
    for (;;) {
      std::uint32_t holder = 0;
      if (board.lock.compare_exchange_strong(holder, own)) return Locked(board);
      if (Clock::now() > deadline)
        return fail(Code::timed_out, "task " + std::to_string(holder - 1) + " keeps names locked");
      futex_wait(board.lock, holder, slice_us);
    }
  }
  Locked(Locked&& other) noexcept : board_(std::exchange(other.board_, nullptr)) {}
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Locked& operator=(Locked&&) = delete;
  ~Locked() {
    if (board_ == nullptr) return;
    board_->lock = 0;
    futex_wake(board_->lock, 1);
  }

 private:
  explicit Locked(Board& board) : board_(&board) {}
  Board* board_;
};

Export* find_name(Board& board, const std::string& name) {
  for (Export& shown : board.exports)
    if (shown.owner != 0 && name == shown.name.data()) return &shown;
  return nullptr;
}

Status judge_name(const std::string& name) {
  if (!name.empty() && name.size() < max_name) return {};
  return fail(Code::bad_argument,
              "a name of memory has 1 to " + std::to_string(max_name - 1) + " bytes");
}

void announce(Board& board) {
  board.exports_changed.fetch_add(1);
  futex_wake(board.exports_changed, INT_MAX);
}

}  // namespace

std::optional<Membership> Membership::own() {
  auto* const control = reinterpret_cast<Control*>(::getauxval(aux_control));
  // A child made by fork has a copy of everything, but is another process.
  if (control == nullptr || control->magic != control_magic ||
      control->board->places[static_cast<std::size_t>(control->task)].pid != ::getpid())
    return std::nullopt;
  return Membership(control);
}

Status Membership::must_be_task(int task) const {
  const bool possible = task >= 0 && static_cast<std::uint64_t>(task) < board().task_limit;
  if (possible && board().places[static_cast<std::size_t>(task)].state == PlaceState::running)
    return {};
  return fail(Code::peer_lost, "there is no task " + std::to_string(task));
}

std::vector<int> Membership::tasks() const {
  std::vector<int> there;
  for (std::uint64_t task = 0; task < board().task_limit; ++task)
    if (board().places[task].state == PlaceState::running) there.push_back(static_cast<int>(task));
  return there;
}

Result<MemoryRange> Membership::partition(int task) const {
  if (task < 0 || static_cast<std::uint64_t>(task) >= board().task_limit)
    return fail(Code::bad_argument, "there can be no task " + std::to_string(task));
  return MemoryRange{
      board().first_partition + static_cast<std::uint64_t>(task) * board().partition_size,
      board().partition_size};
}

Result<pid_t> Membership::process(int task) const {
  SHIMA_TRY(must_be_task(task));
  return board().places[static_cast<std::size_t>(task)].pid.load();
}

std::optional<int> Membership::owner(std::uint64_t address) const {
  if (address < board().first_partition) return {};
  const std::uint64_t task = (address - board().first_partition) / board().partition_size;
  if (task >= board().task_limit || board().places[task].state != PlaceState::running) return {};
  return static_cast<int>(task);
}

Status Membership::show(const std::string& name, MemoryRange memory) const {
  SHIMA_TRY(judge_name(name));
  Board& board = *control_->board;
  SHIMA_TRY_ASSIGN(const Locked lock, Locked::take(board, task()));
  if (find_name(board, name) != nullptr)
    return fail(Code::file_exists, "the name " + name + " is taken");
  const auto free =
      std::ranges::find_if(board.exports, [](const Export& shown) { return shown.owner == 0; });
  if (free == board.exports.end())
    return fail(Code::no_memory, "all " + std::to_string(max_exports) + " names are taken");
  free->name = {};
  std::ranges::copy(name, free->name.begin());
  free->address = memory.begin;
  free->size = memory.size;
  free->owner = task() + 1;  // last: a task that is killed before has shown nothing
  announce(board);
  return {};
}

Status Membership::hide(const std::string& name) const {
  Board& board = *control_->board;
  SHIMA_TRY_ASSIGN(const Locked lock, Locked::take(board, task()));
  Export* const shown = find_name(board, name);
  if (shown == nullptr || shown->owner != task() + 1)
    return fail(Code::bad_argument, "the name " + name + " is not this task's");
  shown->owner = 0;
  return {};
}

Result<Imported> Membership::find(const std::string& name,
                                  std::optional<std::chrono::milliseconds> limit) const {
  SHIMA_TRY(judge_name(name));
  Board& board = *control_->board;
  const auto begun = Clock::now();
  for (;;) {
    const std::uint32_t seen = board.exports_changed;
    {
      SHIMA_TRY_ASSIGN(const Locked lock, Locked::take(board, task()));
      if (const Export* shown = find_name(board, name))
        return Imported{{shown->address, shown->size}, shown->owner - 1};
    }
    const auto left = limit ? *limit - (Clock::now() - begun) : longest_wait;
    if (limit && left <= Clock::duration::zero())
      return fail(Code::timed_out, "nobody shows memory named " + name);
    const auto left_us = std::chrono::duration_cast<std::chrono::microseconds>(left).count() + 1;
    futex_wait(board.exports_changed, seen,
               static_cast<std::uint32_t>(std::min<std::int64_t>(left_us, 1'000'000)));
  }
}

// Counted before the look at the state; the root marks the end before it looks at the counts.
Status Membership::hold(int other) const {
  SHIMA_TRY(must_be_task(other));
  auto& count =
      control_->board->holds[static_cast<std::size_t>(other)][static_cast<std::size_t>(task())];
  count.fetch_add(1);
  const Status there = must_be_task(other);
  if (!there) count.fetch_sub(1);
  return there;
}

Status Membership::release(int other) const {
  if (other < 0 || static_cast<std::uint64_t>(other) >= board().task_limit)
    return fail(Code::bad_argument, "there can be no task " + std::to_string(other));
  auto& count =
      control_->board->holds[static_cast<std::size_t>(other)][static_cast<std::size_t>(task())];
  std::uint16_t now = count.load();
  while (now > 0 && !count.compare_exchange_weak(now, static_cast<std::uint16_t>(now - 1))) {
  }
  if (now == 0) return fail(Code::bad_argument, "task " + std::to_string(other) + " is not held");
  return {};
}

}  // namespace shima::pvas
