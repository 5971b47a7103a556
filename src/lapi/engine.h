// A context: one task's end of one-sided communication and active messages.
//
// An operation goes the shortest way to its target: by pointers within one address space, by
// process_vm_* if the data is large, else as a message. Messages of a task to another arrive in
// order. Whichever thread polls is the *dispatcher*: it takes messages from the streams and serves
// them, one thread at a time. Threads that wait poll first, then sleep until the bell rings. A
// helper thread polls if no other does and interrupts are on. While the program polls in a loop,
// the helper leaves it the messages, and looks every millisecond whether it still polls. A fence is
// a message that every target answers after all earlier ones.
//
// A program that polls answers what it has received: so its round of the dispatcher ends when a
// counter of the program has grown, and that a near task's Put is complete is told (*owed*) after
// the program's next message to that task, or with the next round; at once if the program has not
// answered the last one, until it answers again.
//
// The loss of a task ends the waits that need it: see can_grow().
#pragma once

#include <lapi.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/process/biased_mutex.h"
#include "base/result.h"
#include "lapi/arrival.h"
#include "lapi/completions.h"
#include "lapi/counter.h"
#include "lapi/handlers.h"
#include "lapi/operation.h"
#include "lapi/outbox.h"
#include "lapi/own_memory.h"
#include "lapi/own_thread.h"
#include "lapi/short_poll.h"
#include "lapi/way/ways.h"

namespace shima::lapi {

struct EngineOptions {
  lapi_handle_t handle = 0;
  int completion_threads = 1;
  LAPI_err_hndlr* on_error = nullptr;
};

// An active message without its data.
struct Call {
  std::uint64_t handler = 0;
  std::span<const std::byte> header;
  bool vector = false;  // the handler returns a vector
  lapi_vectype_t vector_type = LAPI_GEN_IOVECTOR;
  std::span<const ulong> lens{};  // of the origin's pieces, for a vector handler
  bool copy = false;              // header and data may be reused at once
};

struct RmwRequest {
  RMW_ops_t operation = FETCH_AND_ADD;
  std::uint32_t size_bits = 32;
  std::uint64_t variable = 0;
  std::array<std::uint64_t, 2> input{};
  void* previous = nullptr;
};

class Engine {
 public:
  static constexpr std::uint64_t packet_bytes = 2048;  // MAX_PKT_SZ

  [[nodiscard]] static Result<std::unique_ptr<Engine>> start(std::unique_ptr<Ways> ways,
                                                             const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();
  // Completes what this task has sent and leaves the job.
  [[nodiscard]] Status finish();
  // Only shows that the task leaves: for the end of the process. No later loss is reported.
  void leave_now();

  // Whether the calling thread is one of this engine.
  [[nodiscard]] bool owns_thread() const { return engine_of_thread == this; }
  [[nodiscard]] int task() const { return ways_->task(); }
  [[nodiscard]] int tasks() const { return tasks_; }
  [[nodiscard]] Handlers& handlers() { return handlers_; }

  // Operations (operate.cpp).
  [[nodiscard]] Status put(int task, const Pieces& target, const Pieces& origin,
                           std::uint64_t target_counter, const Notices& notices);
  [[nodiscard]] Status get(int task, const Pieces& target, const Pieces& origin,
                           std::uint64_t target_counter, const Notices& notices);
  [[nodiscard]] Status send_active(int task, const Call& call, const Pieces& data,
                                   std::uint64_t target_counter, const Notices& notices);
  [[nodiscard]] Status rmw(int task, const RmwRequest& request, const Notices& notices);

  // Counters and progress.
  void set_counter(lapi_cntr_t& counter, int value);
  [[nodiscard]] Status wait_counter(lapi_cntr_t& counter, int value);
  // One round of the dispatcher; gives the core away after many calls in vain: if there was no
  // message and the counter that the program looks at, if any, has not changed.
  void probe(lapi_cntr_t* counter = nullptr);
  // Polls up to `rounds` times; returns LAPI_*_COMPLETE flags.
  [[nodiscard]] uint poll_messages(uint rounds);
  // The lock that the program shares with the dispatcher. Its owner may call everything; no other
  // thread runs a header handler.
  void lock_dispatcher();
  [[nodiscard]] bool try_lock_dispatcher();
  // False if the caller does not own it.
  [[nodiscard]] bool unlock_dispatcher();
  void set_interrupts(bool on);
  [[nodiscard]] bool interrupts();

  // Meetings (meet.cpp).
  // Stores the task that has answered last, if one has.
  [[nodiscard]] Status fence(int* last = nullptr);
  [[nodiscard]] Status global_fence();
  [[nodiscard]] Status gather(std::uint64_t value, std::span<std::uint64_t> all);

 private:
  struct Peer {
    Outbox outbox;
    Arrival arrival;
    std::atomic<std::uint64_t> fenced{0};       // of outbox.to_fence(), known to be stored
    std::atomic<std::uint64_t> owed{0};         // ticket of a put that is complete, not told yet
    std::atomic<bool> is_answered_late{false};  // the last one was owed in vain
    std::atomic<Clock::rep> told_at{0};         // then: when the last one was told
    std::deque<std::uint64_t> gathered;
    std::atomic<bool> is_gone{false};            // and its operations have failed
    std::atomic<bool> is_given_up{false};        // it has done what no task does
    std::atomic<bool> is_needed_no_more{false};  // this task has left the job before it
  };
  class Attendance;
  using Ready = FunctionRef<bool()>;
  using Judge = FunctionRef<Status()>;

  Engine(std::unique_ptr<Ways> ways, const EngineOptions& options);
  [[nodiscard]] Transport& way(int task) { return ways_->to(task); }

  // Waiting (engine.cpp).
  [[nodiscard]] static Status check_may_wait();
  [[nodiscard]] Status wait(Ready ready, Judge judge);
  [[nodiscard]] bool poll_shortly(Ready ready);
  enum class Look : std::uint8_t { is_over, is_interrupted, is_ready };
  [[nodiscard]] Look serve_shortly(Ready ready);
  [[nodiscard]] Look look_for_a_moment(Ready ready);
  [[nodiscard]] Status wait_asleep(Ready ready, Judge judge);
  [[nodiscard]] std::optional<Status> judge_finally(Ready ready, Judge judge);
  [[nodiscard]] bool sleep_briefly(Ready ready, std::uint32_t seen);
  [[nodiscard]] bool poll();
  [[nodiscard]] bool is_due();
  [[nodiscard]] bool run_round(bool program_goes_on = false);
  [[nodiscard]] bool has_work();
  void help();
  void serve_as_helper();
  void note_loop();
  void note_polling();
  [[nodiscard]] bool is_polled();
  // Whether each task of this node has a core to wait on, and this one is on its own.
  [[nodiscard]] bool has_core() { return ways_->tasks_here() <= cores_ && !ways_->shares_core(); }
  void leave_shared_core();
  [[nodiscard]] bool may_spin() { return !sleeps_at_once_ && has_core(); }

  // Sending (operate.cpp).
  [[nodiscard]] Status check_target(int task);
  void send(int task, const Message& message, std::span<const std::byte> header = {},
            const Pieces& data = {}, bool copy_data = false, const Sent& sent = {});
  [[nodiscard]] bool flush();
  void send_done(int task, std::uint64_t ticket);
  [[nodiscard]] bool answers_first(int task);
  void owe_done(int task, std::uint64_t ticket);
  void send_owed(int task);
  void send_last(int task);
  void note_late_answers();
  void note_answer(Peer& peer);
  void throttle(int task);
  void tell(const Sent& sent, int task, uint reason);
  void tell_done(const Notices& notices, int task);
  void tell_failed(const Operation& operation);
  void grow_and_wake(lapi_cntr_t* counter, int source);
  void grow_at_target(int task, std::uint64_t counter);
  [[nodiscard]] Status copy(int task, Direction direction, const Pieces& here, const Pieces& there);

  // Receiving (deliver.cpp).
  [[nodiscard]] bool receive(int task);
  [[nodiscard]] bool receive_step(int task, Arrival& arrival);
  [[nodiscard]] bool pull(int task, Arrival& arrival, std::span<std::byte> all);
  [[nodiscard]] Result<bool> receive_header(int task, Arrival& arrival);
  [[nodiscard]] bool receive_data(int task, Arrival& arrival);
  void begin(int task, Arrival& arrival);
  void finish_message(int task, Arrival& arrival);
  void finish_put(int task, const Message& head);
  void grow_for_program(int task, std::uint64_t counter);
  void serve_get(int task, const Arrival& arrival);
  void finish_get(int task, const Message& head);
  void serve_rmw(int task, const Message& head);
  void finish_rmw(int task, const Message& head);
  void finish_done(int task, const Message& head);
  void finish_active(int task, Arrival& arrival);
  void finish_call(int task, std::uint64_t target_counter, std::uint64_t ticket);
  [[nodiscard]] Pieces call_handler(int task, Arrival& arrival, std::byte* packet);
  [[nodiscard]] Pieces call_vector_handler(void* handler, Arrival& arrival,
                                           lapi_return_info_t& info);
  void report(const Error& error, int task, lapi_err_t type);
  void call_error_handler(int task, lapi_err_t type);
  bool give_up(int task, std::string_view what);

  // Checks of what arrives (admit.cpp).
  enum class Verdict : std::uint8_t { sound, refused, malformed };
  [[nodiscard]] Status admit(int task, Arrival& arrival);
  [[nodiscard]] Verdict judge_message(int task, Arrival& arrival);
  [[nodiscard]] bool may_use(const Pieces& pieces, Use use);
  [[nodiscard]] bool may_count(std::uint64_t counter);
  void refuse(int task, const Message& head);

  // Losses (meet.cpp).
  [[nodiscard]] bool is_gone(int task);
  [[nodiscard]] Status can_grow(lapi_cntr_t& counter, bool has_new_loss);
  [[nodiscard]] bool is_named(const lapi_cntr_t& counter);
  [[nodiscard]] int first_of(Standing standing);
  [[nodiscard]] Status check_needed(int task, const char* what);
  [[nodiscard]] Status check_all_in(std::uint64_t number);
  void notice_changes();
  void task_lost(int task);
  void fail_operations(int task);

  EngineOptions options_;
  int tasks_;
  std::unique_ptr<Ways> ways_;
  // Each poll of a socket is a system call, and the sender may need this core.
  bool sleeps_at_once_;
  ShortPoll short_poll_;
  ShortPoll serving_poll_;
  int cores_;
  Bell& bell_;
  Handlers handlers_;
  Operations operations_;
  Completions completions_;
  std::vector<Peer> peers_;

  RecursiveBiasedMutex dispatcher_;
  std::atomic<std::thread::id> program_owner_{};  // changed under dispatcher_
  int program_locks_ = 0;                         // of its owner
  OwnMemory memory_;                              // these four: the dispatcher's
  bool program_goes_on_ = false;
  bool has_told_program_ = false;
  bool has_left_messages_ = false;
  std::atomic<std::uint32_t> seen_changes_{0};
  std::atomic<std::uint64_t> losses_{0};       // of tasks, whose operations have failed
  std::atomic<std::uint64_t> told_losses_{0};  // of them, those that have ended a wait
  std::atomic<std::uint64_t> served_{0};       // messages; changed by the dispatcher
  std::atomic<std::uint64_t> sends_completed_{0};
  std::atomic<std::uint64_t> receives_completed_{0};

  std::mutex meeting_;  // one meeting at a time
  std::uint64_t barriers_ = 0;
  std::array<std::atomic<std::uint64_t>, most_barrier_rounds> barrier_messages_{};
  std::mutex gathering_;

  std::atomic<std::uint32_t> polls_{0};  // of the program's loops
  std::atomic<bool> stopping_{false};
  std::thread helper_;
};

}  // namespace shima::lapi
