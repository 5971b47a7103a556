// Fences and collective calls of a context, and the loss of tasks.
#include <fmt/format.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "lapi/engine.h"

namespace shima::lapi {

Status Engine::fence(int* last) {
  lapi_cntr_t answers{};
  int asked = 0;
  Status status;
  std::vector<std::uint64_t> sent(peers_.size());
  for (int task = 0; task < tasks_; ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    sent[static_cast<std::size_t>(task)] = peer.outbox.to_fence();
    if (peer.fenced.load() >= sent[static_cast<std::size_t>(task)]) continue;
    if (auto there = check_target(task); !there) {
      peer.fenced = sent[static_cast<std::size_t>(task)];  // reported once
      status = there;
      continue;
    }
    SHIMA_TRY(check_may_wait());
    ++asked;
    const std::uint64_t ticket =
        operations_.add({.task = task, .expected = complete, .notices = {.complete = &answers}});
    send(task, {.kind = Kind::fence, .ticket = ticket});
  }
  fault_point(FaultPhase::lapi_fence);
  if (asked > 0) {
    const Status waited =
        wait([&] { return value_of(answers) >= asked; }, [&] { return can_grow(answers, false); });
    if (!waited) {
      const std::lock_guard hold(dispatcher_);  // which may be about to make it grow
      operations_.abandon(answers);
      return waited;
    }
    if (last != nullptr) *last = last_source(answers);
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    std::uint64_t known = peers_[i].fenced.load();
    while (known < sent[i] && !peers_[i].fenced.compare_exchange_weak(known, sent[i])) {
    }
  }
  return status;
}

// Dissemination: in round r every task sends to the one 2^r further. Messages of a round come from
// one task, in order, so counting them suffices.
Status Engine::global_fence() {
  SHIMA_TRY(fence());
  const std::lock_guard hold(meeting_);
  const std::uint64_t number = ++barriers_;
  ways_->show_meetings(number);
  std::uint32_t round = 0;
  for (int distance = 1; distance < tasks_; distance *= 2, ++round) {
    send((task() + distance) % tasks_,
         {.kind = Kind::barrier, .code = static_cast<std::uint8_t>(round)});
    fault_point(FaultPhase::lapi_barrier);
    const auto& arrived = barrier_messages_[round];
    SHIMA_TRY(wait([&] { return arrived.load() >= number; }, [&] { return check_all_in(number); }));
  }
  return {};
}

Status Engine::gather(std::uint64_t value, std::span<std::uint64_t> all) {
  const std::lock_guard hold(meeting_);
  Message message{.kind = Kind::gather};
  message.operands[0] = value;
  for (int i = 0; i < tasks_; ++i) send((task() + i) % tasks_, message);
  fault_point(FaultPhase::lapi_gather);
  const auto has_come = [&](int i) {
    const std::lock_guard look(gathering_);
    return !peers_[static_cast<std::size_t>(i)].gathered.empty();
  };
  // Another task may have given up already, and not send any more.
  const auto check_others = [&](int first) -> Status {
    for (int i = first; i < tasks_; ++i)
      if (!has_come(i)) SHIMA_TRY(check_needed(i, "LAPI_Address_init"));
    return {};
  };
  for (int i = 0; i < tasks_; ++i) {
    SHIMA_TRY(wait([&] { return has_come(i); }, [&] { return check_others(i); }));
    const std::lock_guard look(gathering_);
    auto& gathered = peers_[static_cast<std::size_t>(i)].gathered;
    all[static_cast<std::size_t>(i)] = gathered.front();
    gathered.pop_front();
  }
  return {};
}

bool Engine::is_gone(int task) { return way(task).standing(task) >= Standing::left; }

Status Engine::check_needed(int task, const char* what) {
  const Status there = check_target(task);
  if (there) return {};
  return fail(Code::peer_lost,
              fmt::format("{} needs all tasks, but {}", what, there.error().what.c_str()));
}

// A task that has left after this barrier had its part in it; the others still come.
Status Engine::check_all_in(std::uint64_t number) {
  for (int task = 0; task < tasks_; ++task)
    if (way(task).standing(task) == Standing::lost || way(task).meetings(task) < number)
      SHIMA_TRY(check_needed(task, "LAPI_Gfence"));
  return {};
}

// A task with this standing, or -1.
int Engine::first_of(Standing standing) {
  for (int task = 0; task < tasks_; ++task)
    if (way(task).standing(task) == standing) return task;
  return -1;
}

// Whether an operation that has not failed names the counter, or a completion handler may.
bool Engine::is_named(const lapi_cntr_t& counter) {
  const auto lives = [&](int task) {
    return !peers_[static_cast<std::size_t>(task)].is_gone.load();
  };
  if (operations_.names(counter, lives) || completions_.is_busy()) return true;
  for (int task = 0; task < tasks_; ++task)
    if (lives(task) && peers_[static_cast<std::size_t>(task)].outbox.names(counter)) return true;
  return false;
}

// Whether a counter can grow after tasks have gone. It can't if an operation that names it has
// failed, or if it has grown last by a task that is lost. It can if a pending operation names it,
// or if it has grown last by a living task. Else its source is unknown: any living task may make it
// grow; but a loss ends the waits that it finds, or else the next one.
Status Engine::can_grow(lapi_cntr_t& counter, bool has_new_loss) {
  const auto never = [&](int task) -> Status {
    return fail(
        Code::peer_lost,
        fmt::format("waiting for a counter that task {} may have to make grow: it has {}", task,
                    !is_gone(task)                               ? "failed to access the data"
                    : way(task).standing(task) == Standing::left ? "left the job"
                                                                 : "ended"));
  };
  if (const auto failed_task = operations_.failed_on(counter)) return never(*failed_task);
  const int lost = first_of(Standing::lost);
  const int left = first_of(Standing::left);
  if ((lost < 0 && left < 0) || is_named(counter)) return {};
  const int source = last_source(counter);
  if (source >= 0 && source < tasks_) {
    if (!is_gone(source)) return {};
    if (way(source).standing(source) == Standing::lost) return never(source);
  }
  if (lost >= 0 && has_new_loss) return never(lost);
  for (int task = 0; task < tasks_; ++task)
    if (task != ways_->task() && !is_gone(task)) return {};
  return never(lost >= 0 ? lost : left);
}

// Called by the dispatcher when a task has appeared or left.
void Engine::notice_changes() {
  seen_changes_ = ways_->changes();
  for (int task = 0; task < tasks_; ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    if (peer.is_gone || !is_gone(task) || task == ways_->task()) continue;
    do {
      ways_->look();
    } while (way(task).has_data(task) && receive(task));
    peer.is_gone = true;
    if (peer.arrival.is_begun() && way(task).standing(task) == Standing::left)
      std::ignore = give_up(task, "has left the job within a message");
    if (way(task).standing(task) == Standing::lost) {
      ++losses_;
      way(task).stop_receiving(task);
    }
    fail_operations(task);
  }
}

// Treats a task as lost; nothing more is read from it. The way logs it.
bool Engine::give_up(int task, std::string_view what) {
  peers_[static_cast<std::size_t>(task)].is_given_up = true;
  way(task).give_up(task, what);
  --seen_changes_;  // notice_changes() is due
  return false;
}

// Called by the watching thread.
void Engine::task_lost(int task) {
  engine_of_thread = this;
  {
    const std::lock_guard hold(dispatcher_);
    --seen_changes_;  // notice_changes() is due
    std::ignore = run_round();
  }
  ways_->ring_all();
  const Peer& peer = peers_[static_cast<std::size_t>(task)];
  if (peer.is_needed_no_more) return;
  if (peer.is_given_up) return call_error_handler(task, COM_ERR);
  const Error error{
      Code::peer_lost, 0,
      fmt::format("task {} has ended without LAPI_Term; calls that need it fail", task)};
  report(error, task, COM_ERR);
}

// Again by a thread that has sent to the task since.
void Engine::fail_operations(int task) {
  for (const Operation& operation : operations_.fail(task)) tell_failed(operation);
  for (const Sent& sent : peers_[static_cast<std::size_t>(task)].outbox.drop())
    tell(sent, task, LAPI_ERR_TASK_LOST);
  ways_->post_attendants();
}

}  // namespace shima::lapi
