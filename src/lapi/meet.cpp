// Fences and collective calls of a context, and the loss of tasks.
#include <fmt/format.h>

#include "base/log.h"
#include "lapi/engine.h"

namespace shima::lapi {

Status Engine::fence() {
  lapi_cntr_t answers{};
  int asked = 0;
  Status status;
  std::vector<std::uint64_t> sent(peers_.size());
  for (int task = 0; task < tasks_; ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    sent[static_cast<std::size_t>(task)] = peer.sent.load(std::memory_order_seq_cst);
    if (peer.fenced.load() >= sent[static_cast<std::size_t>(task)]) continue;
    if (auto there = check_target(task); !there) {
      peer.fenced = sent[static_cast<std::size_t>(task)];  // reported once
      status = there;
      continue;
    }
    ++asked;
    const std::uint64_t ticket =
        operations_.add({.task = task, .expected = complete, .notices = {.complete = &answers}});
    send(task, {.kind = Kind::fence, .ticket = ticket});
  }
  if (asked > 0) {
    const Status waited =
        wait([&] { return value_of(answers) >= asked; }, [&] { return can_grow(answers); });
    operations_.abandon(answers);
    if (!waited) return waited;
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
  node_->show_meetings(number);
  std::uint32_t round = 0;
  for (int distance = 1; distance < tasks_; distance *= 2, ++round) {
    send((task() + distance) % tasks_, {.kind = Kind::barrier, .code = round});
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
  for (int i = 0; i < tasks_; ++i) {
    auto& gathered = peers_[static_cast<std::size_t>(i)].gathered;
    const auto has_come = [&] {
      const std::lock_guard look(gathering_);
      return !gathered.empty();
    };
    SHIMA_TRY(wait(has_come, [&] { return check_needed(i, "LAPI_Address_init"); }));
    const std::lock_guard look(gathering_);
    all[static_cast<std::size_t>(i)] = gathered.front();
    gathered.pop_front();
  }
  return {};
}

bool Engine::is_gone(int task) { return node_->standing(task) >= Standing::left; }

Status Engine::check_needed(int task, const char* what) {
  const Status there = check_target(task);
  if (there) return {};
  return fail(Code::peer_lost,
              fmt::format("{} needs all tasks, but {}", what, there.error().what.c_str()));
}

// A task that has left after this barrier had its part in it; the others still come.
Status Engine::check_all_in(std::uint64_t number) {
  for (int task = 0; task < tasks_; ++task)
    if (node_->standing(task) == Standing::lost || node_->meetings(task) < number)
      SHIMA_TRY(check_needed(task, "LAPI_Gfence"));
  return {};
}

// Whether a counter can grow after the loss of tasks. It can if a pending operation on a living
// task names it, or if a living task has made it grow last. Of a counter that has not grown yet
// nothing is known, so its wait ends.
Status Engine::can_grow(lapi_cntr_t& counter) {
  bool any_gone = false;
  for (int task = 0; task < tasks_; ++task) any_gone |= is_gone(task);
  if (!any_gone) return {};
  const bool has_failed = operations_.has_failed(counter);
  if (!has_failed && operations_.names(counter)) return {};
  const int source = last_source(counter);
  const bool source_known = source >= 0 && source < tasks_;
  if (!has_failed && source_known && !is_gone(source)) return {};
  for (int task = 0; task < tasks_; ++task)
    if (is_gone(task) && (has_failed || !source_known || task == source))
      return fail(
          Code::peer_lost,
          fmt::format("waiting for a counter that task {} may have to make grow: it has {}", task,
                      node_->standing(task) == Standing::left ? "left the job" : "ended"));
  return {};
}

// Called by the dispatcher when a task has appeared or left.
void Engine::notice_changes() {
  seen_changes_ = node_->changes();
  for (int task = 0; task < tasks_; ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    if (peer.is_gone || !is_gone(task) || task == options_.task) continue;
    while (node_->has_data(task) && receive(task)) {
    }
    peer.is_gone = true;
    fail_operations(task);
  }
}

// Called by the watching thread.
void Engine::task_lost(int task) {
  {
    const std::lock_guard hold(dispatcher_);
    --seen_changes_;  // notice_changes() is due
    std::ignore = run_round();
  }
  bell_->ring_all();
  const Error error{
      Code::peer_lost, 0,
      fmt::format("task {} has ended without LAPI_Term; calls that need it fail", task)};
  report(error, task, COM_ERR);
}

void Engine::fail_operations(int task) {
  for (const Operation& operation : operations_.fail(task)) {
    const Notices& notices = operation.notices;
    if (notices.sent != nullptr && (operation.expected == 0 || (operation.expected & origin_free)))
      tell({nullptr, task, notices.sent, notices.sent_info}, task, LAPI_ERR_TASK_LOST);
  }
  for (const Sent& sent : peers_[static_cast<std::size_t>(task)].outbox.drop())
    tell(sent, task, LAPI_ERR_TASK_LOST);
  bell_->attendants.post();
}

}  // namespace shima::lapi
