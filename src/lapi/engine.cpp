#include "lapi/engine.h"

#include <fmt/format.h>
#include <sched.h>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "base/process/cpu_mask.h"
#include "base/process/quiet_thread.h"
#include "observe/board.h"

namespace shima::lapi {
namespace {

constexpr unsigned least_rounds_to_move = 16;
constexpr unsigned most_rounds_to_move = 512;
constexpr unsigned rounds_between_looks = 8;  // at who uses this core: 10 ns of a round's 40

// What the calling thread does.
struct ThreadState {
  const Engine* dispatching = nullptr;  // whose dispatcher it is
  unsigned idle_rounds = 0;             // in vain since the last message
  unsigned loop_rounds = 0;             // in vain without a pause for computing
  unsigned vain_rounds = 0;             // all of them
  bool spins = false;                   // as the thread has found it when it looked last
  Clock::rep last_probe = 0;            // when it has ended, since the clock's epoch
  struct Looked {
    const lapi_cntr_t* counter = nullptr;
    int value = 0;
  };
  std::array<Looked, 4> looked{};  // counters, and what it has seen of them
  unsigned oldest = 0;
  unsigned shared_rounds = 0;  // in vain on a core that another task uses, though there are enough
  unsigned rounds_to_move = least_rounds_to_move;  // between moves to another core
  bool has_skipped = false;                        // a round, because the counter had changed
};
constinit thread_local ThreadState own_state{};

// Whether a counter has another value than when the thread looked at it last. A program may look at
// several in turn.
bool has_changed(ThreadState& own, lapi_cntr_t* counter) {
  if (counter == nullptr) return false;
  const int value = value_of(*counter);
  for (ThreadState::Looked& known : own.looked)
    if (known.counter == counter) return std::exchange(known.value, value) != value;
  own.looked[own.oldest++ % own.looked.size()] = {counter, value};
  return false;
}

constexpr std::uint32_t long_sleep_us = 1'000'000'000;
constexpr std::uint32_t poll_check_us = 1000;

}  // namespace

// While a thread attends, messages wake it and not the helper.
class Engine::Attendance {
 public:
  explicit Attendance(Engine& engine) : engine_(engine) { engine_.ways_->begin_attendance(); }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;
  ~Attendance() {
    engine_.ways_->end_attendance();
    if (engine_.has_work()) engine_.ways_->ring();
  }

 private:
  Engine& engine_;
};

Engine::Engine(std::unique_ptr<Ways> ways, const EngineOptions& options)
    : options_(options),
      tasks_(ways->tasks()),
      ways_(std::move(ways)),
      sleeps_at_once_(ways_->polls_sockets()),
      cores_(CpuMask::own().count()),
      bell_(ways_->bell()),
      completions_(std::max(options_.completion_threads, 1), this),
      peers_(static_cast<std::size_t>(tasks_)) {}

Result<std::unique_ptr<Engine>> Engine::start(std::unique_ptr<Ways> ways,
                                              const EngineOptions& options) {
  fault_point(FaultPhase::lapi_shown);
  std::ignore = can_order_threads();  // asked first, while the process may have one thread
  std::unique_ptr<Engine> engine(new Engine(std::move(ways), options));
  Engine* const own = engine.get();
  SHIMA_TRY(own->ways_->watch({.on_lost = [own](int task) { own->task_lost(task); },
                               .serve =
                                   [own] {
                                     engine_of_thread = own;
                                     own->serve_as_helper();
                                   }}));
  SHIMA_TRY_ASSIGN(engine->helper_, start_quiet_thread([own] { own->help(); }));
  return engine;
}

Engine::~Engine() {
  for (int task = 0; task < tasks_; ++task) send_last(task);
  stopping_ = true;
  ways_->leave();  // its threads may call in until then
  ways_->ring_all();
  if (helper_.joinable()) helper_.join();
  completions_.end();
  ways_.reset();
}

Status Engine::finish() {
  if (engine_of_thread != nullptr || own_state.dispatching != nullptr)
    return fail(Code::unsupported_operation,
                "LAPI_Term ends the threads that call handlers, so a handler may not call it");
  set_interrupts(true);
  completions_.finish();
  const auto all_sent = [&] {
    bool sent = operations_.empty() && !ways_->has_unsent();
    for (const Peer& peer : peers_) sent &= peer.outbox.length() == 0 && peer.owed == 0;
    return sent;
  };
  const Status status = wait(all_sent, [] { return Status{}; });
  completions_.finish();
  fault_point(FaultPhase::lapi_term);
  return status;
}

void Engine::leave_now() {
  for (int task = 0; task < tasks_; ++task) {
    Peer& peer = peers_[static_cast<std::size_t>(task)];
    // The meeting place tells this task no more whether an end is a loss. What is known already
    // may have failed a message, which only the report of the loss says.
    peer.is_needed_no_more = !peer.is_gone;
    if (peer.outbox.length() == 0) send_owed(task);
    send_last(task);
  }
  ways_->show_left();
}

// Whether a round of the dispatcher would move bytes.
bool Engine::has_work() {
  for (int task = 0; task < tasks_; ++task) {
    const Peer& peer = peers_[static_cast<std::size_t>(task)];
    Transport& there = way(task);
    if (there.has_data(task) || peer.owed.load(std::memory_order_relaxed) != 0 ||
        (peer.outbox.length() != 0 && there.has_room(task)))
      return true;
  }
  return false;
}

// Whether a round may find something to do.
bool Engine::is_due() {
  return ways_->is_over_hosts() || has_work() ||
         ways_->changes() != seen_changes_.load(std::memory_order_relaxed);
}

bool Engine::poll() {
  if (own_state.dispatching != nullptr || !is_due()) return false;
  const std::unique_lock hold(dispatcher_, std::try_to_lock);
  if (!hold) return false;
  const bool moved = run_round(true);
  // The next call may come late, and bytes in memory wake no thread that waits at sockets.
  if (has_left_messages_) ways_->ring();
  return moved;
}

// The caller holds dispatcher_; the program goes on if its own thread polls.
bool Engine::run_round(bool program_goes_on) {
  own_state.dispatching = this;
  program_goes_on_ = program_goes_on;
  has_told_program_ = false;
  has_left_messages_ = false;
  ways_->begin_round();
  if (!program_goes_on) note_late_answers();
  bool moved = flush();
  for (int task = 0; task < tasks_; ++task)
    if (way(task).has_data(task)) moved |= receive(task);
  if (ways_->changes() != seen_changes_) notice_changes();
  ways_->end_round(program_goes_on);
  own_state.dispatching = nullptr;
  if (moved) ways_->wake_attendants();
  return moved;
}

void Engine::lock_dispatcher() {
  dispatcher_.lock();
  program_owner_ = std::this_thread::get_id();
  ++program_locks_;
}

bool Engine::try_lock_dispatcher() {
  if (!dispatcher_.try_lock()) return false;
  program_owner_ = std::this_thread::get_id();
  ++program_locks_;
  return true;
}

bool Engine::unlock_dispatcher() {
  if (program_owner_.load() != std::this_thread::get_id()) return false;
  if (--program_locks_ == 0) program_owner_ = std::thread::id();
  dispatcher_.unlock();
  return true;
}

void Engine::serve_as_helper() {
  const std::lock_guard hold(dispatcher_);
  while (run_round() && !stopping_) {
  }
}

// Whether the program has polled since the last call; if not, messages wake the helper again.
bool Engine::is_polled() {
  if (bell_.polling.load(std::memory_order_seq_cst) == 0) return false;
  if (polls_.exchange(0) != 0) return true;
  bell_.polling.store(0, std::memory_order_seq_cst);
  ways_->bell_changed();
  return false;
}

void Engine::help() {
  engine_of_thread = this;
  std::uint32_t seen_changes = 0;
  while (!stopping_) {
    const std::uint32_t seen = bell_.helper.word.load(std::memory_order_seq_cst);
    const bool polled = is_polled();
    if (!polled && bell_.interrupts.load(std::memory_order_seq_cst) != 0) serve_as_helper();
    if (std::exchange(seen_changes, ways_->changes()) != seen_changes) {
      ways_->look_again();
      ways_->wake_attendants();  // one may sleep where near tasks do not ring
    }
    bell_.helper.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const bool asleep = bell_.interrupts.load() == 0 || bell_.polling.load() != 0 || !has_work();
    const std::uint32_t limit_us = bell_.polling.load() != 0 ? poll_check_us : long_sleep_us;
    if (asleep && !stopping_) futex_wait(bell_.helper.word, seen, limit_us);
    bell_.helper.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

Status Engine::check_may_wait() {
  if (own_state.dispatching == nullptr) return {};
  return fail(Code::unsupported_operation,
              "a header handler may not wait; do it in the completion handler");
}

Status Engine::wait(Ready ready, Judge judge) {
  if (ready()) return {};
  SHIMA_TRY(check_may_wait());
  const Attendance here(*this);
  constexpr int spins = 4000;
  const int yields = sleeps_at_once_ ? 1 : 3;
  constexpr int between_looks = 64;
  for (int i = 0; i < spins && (i % between_looks != 0 || may_spin()); ++i) {
    if (poll()) i = 0;
    if (ready()) return {};
    relax_core();
  }
  if (sleeps_at_once_ && poll_shortly(ready)) return {};
  leave_shared_core();
  for (int i = 0; i < yields; ++i) {
    std::ignore = poll();
    if (ready()) return {};
    sched_yield();
  }
  return wait_asleep(ready, judge);
}

// Tasks that only yield to each other may stay on one core for many milliseconds, though the node
// has a core for each. Each move doubles the rounds until the next one, in case it does not help.
void Engine::leave_shared_core() {
  if (ways_->tasks_here() > cores_) return;
  ThreadState& own = own_state;
  if (!ways_->shares_core()) {
    own.rounds_to_move = least_rounds_to_move;
    return;
  }
  if (++own.shared_rounds % own.rounds_to_move != 0) return;
  own.rounds_to_move = std::min(2 * own.rounds_to_move, most_rounds_to_move);
  ways_->leave_shared_core();
}

// Looks at the sockets for a moment; returns whether it is ready.
bool Engine::poll_shortly(Ready ready) {
  if (!has_core() || !short_poll_.begin()) return false;
  const bool is_ready = look_for_a_moment(ready) == Look::is_ready;
  is_ready ? short_poll_.note_success() : short_poll_.note_vain();
  return is_ready;
}

// The same after a message has come: who has sent it, may send the next as soon as it has a reply.
Engine::Look Engine::serve_shortly(Ready ready) {
  if (!has_core() || !serving_poll_.begin()) return Look::is_over;
  ways_->send_replies();
  const std::uint64_t served = served_.load(std::memory_order_relaxed);
  const Look look = look_for_a_moment(ready);
  const bool has_served = served_.load(std::memory_order_relaxed) != served;
  if (look != Look::is_ready) has_served ? serving_poll_.note_success() : serving_poll_.note_vain();
  return look;
}

// Until it is ready, or no message has come for a moment. It yields, because the task that it waits
// for may share its core, and it is interrupted from time to time, because a loss that ends the
// wait is judged outside.
Engine::Look Engine::look_for_a_moment(Ready ready) {
  constexpr auto longest = 20 * ShortPoll::moment;
  const Clock::time_point begin = Clock::now();
  Clock::time_point last = begin;
  std::uint64_t served = served_.load(std::memory_order_relaxed);
  for (auto now = begin; now - last < ShortPoll::moment;) {
    if (now - begin >= longest) return Look::is_interrupted;
    std::ignore = poll();
    if (ready()) return Look::is_ready;
    sched_yield();
    now = Clock::now();
    if (std::exchange(served, served_.load(std::memory_order_relaxed)) == served) continue;
    last = now;
    ways_->send_replies();
  }
  return Look::is_over;
}

// An adverse judgement counts only if there is no message left that came before it.
Status Engine::wait_asleep(Ready ready, Judge judge) {
  Look look = Look::is_over;
  while (true) {
    // Before the judgement: what changes it afterwards wakes.
    const std::uint32_t seen = bell_.attendants.word.load(std::memory_order_seq_cst);
    const std::uint64_t served = served_.load(std::memory_order_relaxed);
    const bool may_end = !judge();
    while (poll()) {
      if (ready()) return {};
    }
    if (ready()) return {};
    if (may_end)
      if (const auto verdict = judge_finally(ready, judge)) return *verdict;
    const bool has_served = served_.load(std::memory_order_relaxed) != served;
    look = has_served || look == Look::is_interrupted ? serve_shortly(ready) : Look::is_over;
    if (look == Look::is_ready) return {};
    if (look == Look::is_over && sleep_briefly(ready, seen)) return {};
  }
}

// Judges while no other thread serves a message. Nothing if the wait goes on.
std::optional<Status> Engine::judge_finally(Ready ready, Judge judge) {
  const std::lock_guard hold(dispatcher_);
  bool moved = true;
  while (moved) {
    moved = run_round();
    if (ready()) return Status{};
  }
  if (Status verdict = judge(); !verdict) return verdict;
  return {};
}

// Returns whether it is ready. A caller may ask only once, because `ready` takes what it waits for.
bool Engine::sleep_briefly(Ready ready, std::uint32_t seen) {
  constexpr std::uint32_t slice_us = 1'000'000;
  bool is_ready = false;
  {
    const Asleep asleep;
    ways_->sleep(seen, slice_us, [&] {
      is_ready = ready();
      return !is_ready && !has_work();
    });
  }
  // Another thread may be the dispatcher, and take long.
  if (!is_ready && has_work()) sched_yield();
  return is_ready;
}

void Engine::set_counter(lapi_cntr_t& counter, int value) {
  operations_.forget_failure(counter);
  set(counter, value);
  ways_->wake_attendants();
}

Status Engine::wait_counter(lapi_cntr_t& counter, int value) {
  const std::uint64_t told = told_losses_.load();
  std::uint64_t losses = told;
  const Status waited = wait([&] { return take(counter, value); },
                             [&] {
                               losses = losses_.load();
                               return can_grow(counter, losses != told);
                             });
  if (waited) return {};
  operations_.forget_failure(counter);
  if (losses != told) told_losses_ = losses;
  return waited;
}

void Engine::note_polling() {
  polls_.store(1, std::memory_order_relaxed);
  if (bell_.polling.load(std::memory_order_relaxed) != 0) return;
  bell_.polling.store(1, std::memory_order_seq_cst);
  bell_.helper.post();
}

// Finds out whether the calling thread polls in a loop, and does not compute in between.
void Engine::note_loop() {
  constexpr auto gap = std::chrono::microseconds(20);
  constexpr unsigned loop = 8;
  const bool is_known = bell_.polling.load(std::memory_order_relaxed) != 0;
  if (is_known) polls_.store(1, std::memory_order_relaxed);
  if (is_known && !sleeps_at_once_) return;
  ThreadState& own = own_state;
  const Clock::duration now = Clock::now().time_since_epoch();
  const bool follows = now - Clock::duration(std::exchange(own.last_probe, now.count())) < gap;
  if (!follows) own.loop_rounds = 0, own.idle_rounds = 0;
  if (++own.loop_rounds >= loop) note_polling();
}

void Engine::probe(lapi_cntr_t* counter) {
  ThreadState& own = own_state;
  if (own.dispatching != nullptr) return;
  const std::uint32_t seen = bell_.attendants.word.load(std::memory_order_seq_cst);
  // A counter that has changed needs no round; but every other call makes one.
  own.has_skipped = !own.has_skipped && has_changed(own, counter);
  if (own.has_skipped) {
    own.idle_rounds = 0;
    return;
  }
  if (poll() || has_changed(own, counter)) {
    own.idle_rounds = 0;
    polls_.store(1, std::memory_order_relaxed);
    return;
  }
  note_loop();
  if (own.vain_rounds++ % rounds_between_looks == 0) own.spins = may_spin();
  const unsigned patience = own.spins ? 2000 : 0;
  const unsigned yields = sleeps_at_once_ ? 100 : 1000;
  if (own.idle_rounds < patience + yields) ++own.idle_rounds;
  if (own.idle_rounds <= patience) return;
  leave_shared_core();
  if (own.idle_rounds < patience + yields) {
    sched_yield();
  } else {
    constexpr std::uint32_t nap_us = 200;
    const Attendance here(*this);
    ways_->sleep(seen, nap_us, [&] { return !has_work() && !has_changed(own, counter); });
  }
  // Else note_loop() takes the yield or the short sleep for a pause in which the program computes.
  if (bell_.polling.load(std::memory_order_relaxed) == 0)
    own.last_probe = Clock::now().time_since_epoch().count();
  if (has_changed(own, counter)) own.idle_rounds = 0;
}

uint Engine::poll_messages(uint rounds) {
  const std::uint64_t sends = sends_completed_.load();
  const std::uint64_t receives = receives_completed_.load();
  uint flags = 0;
  for (uint i = 0; i < rounds && flags == 0; ++i) {
    probe();
    if (sends_completed_.load() != sends) flags |= LAPI_SEND_COMPLETE;
    if (receives_completed_.load() != receives) flags |= LAPI_RECV_COMPLETE;
  }
  return flags == 0 ? LAPI_DISP_CNTR : flags;
}

void Engine::set_interrupts(bool on) {
  bell_.interrupts.store(on ? 1 : 0, std::memory_order_seq_cst);
  for (int task = 0; task < tasks_; ++task) send_owed(task);
  bell_.helper.post();
  ways_->bell_changed();
}

bool Engine::interrupts() { return bell_.interrupts.load(std::memory_order_seq_cst) != 0; }

}  // namespace shima::lapi
