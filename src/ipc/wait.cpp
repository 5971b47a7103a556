#include "ipc/wait.h"

#include <fmt/format.h>

#include <algorithm>

#include "observe/board.h"

namespace shima {

Status check_alive(const ProcessIdentity& process) {
  if (!process.has_ended()) return {};
  return fail_settled(Code::peer_lost, 0, [&] {
    return fmt::format("waiting for process {}: it has ended", process.pid);
  });
}

std::uint32_t Sleeper::first_slice_us(const WaitHooks& hooks) {
  const std::uint32_t slice_us_per_task = hooks.one_group ? 50 : 200;
  const auto tasks = static_cast<std::uint32_t>(std::max(hooks.tasks_per_core, 1));
  return std::min(slice_us_per_task * tasks, longest_slice_us);
}

Status Sleeper::slice(Event& event, std::uint32_t seen) {
  event.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool called = false;
  {
    const Asleep asleep;
    called = futex_wait(event.word, seen, slice_us_, as_);
  }
  event.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  // A post for others changes the word too, and does not end the slice.
  if (called && event.word.load(std::memory_order_seq_cst) != seen) {
    slice_us_ = first_slice_us_;
    was_vain_ = false;
    return {};
  }
  was_vain_ = true;
  slice_us_ = std::min(slice_us_ * 2, longest_slice_us);
  if (hooks_.progress) hooks_.progress();
  return check_peers();
}

Status Sleeper::change(Event& event, std::uint32_t seen) {
  const auto changed = [&] { return event.word.load(std::memory_order_seq_cst) != seen; };
  if (!was_vain_ && spin_until(hooks_, changed)) return {};
  return slice(event, seen);
}

Status Sleeper::check_peers() {
  constexpr auto peer_check_period = std::chrono::milliseconds(100);
  if (!hooks_.peers || Clock::now() < next_peer_check_) return {};
  next_peer_check_ = Clock::now() + peer_check_period;
  return hooks_.peers();
}

}  // namespace shima
