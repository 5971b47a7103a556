// The ways of one task to all tasks of its job, and the bell that all of them ring.
//
// A task is *near* if it shows itself in the memory that this task maps (NodeTransport); all others
// are reached over TCP (TcpTransport), if the job has several nodes. The threads of the program
// that wait sleep on the bell's word; if no other task is near, one of them sleeps at the sockets
// instead, so that a message costs one wake-up.
#pragma once

#include <functional>
#include <memory>

#include "base/function_ref.h"
#include "lapi/way/node_transport.h"
#include "lapi/way/tcp_transport.h"

namespace shima::lapi {

// What a way reports to the engine, on threads of its own.
struct WayEvents {
  std::function<void(int)> on_lost;  // a task
  std::function<void()> serve;       // data has arrived, and no thread of the program is awake
};

class Ways {
 public:
  // Shows the task to the others of its node; an error if another process has its place.
  [[nodiscard]] static Result<std::unique_ptr<Ways>> on_node(const JobMemory& memory, int task,
                                                             const NodeOptions& options,
                                                             Mapping mapping = {});
  // Joins the tasks that meet at `place`; an error if the place refuses the task.
  [[nodiscard]] static Result<std::unique_ptr<Ways>> over_hosts(const ServiceAddress& place,
                                                                const TaskNumber& number,
                                                                const NodeOptions& options,
                                                                Carrier carrier = Carrier::tcp);
  // Over the memory that `shima run --lapi -n` has made, or the meeting place, as the environment
  // says (SHIMA_LAPI).
  [[nodiscard]] static Result<std::unique_ptr<Ways>> from_environment(int context);
  Ways(const Ways&) = delete;
  Ways& operator=(const Ways&) = delete;
  ~Ways() { leave(); }

  // Starts the threads that watch the tasks and the sockets.
  [[nodiscard]] Status watch(WayEvents events);
  // Shows that the task has left, and ends the threads.
  void leave();
  // Only shows that the task has left.
  void show_left();
  // In how many meetings this task has taken part.
  void show_meetings(std::uint64_t count);
  // Lets the threads look at tasks that have appeared since.
  void look_again() { near_->look_again(); }

  [[nodiscard]] int task() const { return task_; }
  [[nodiscard]] int tasks() const { return tasks_; }
  [[nodiscard]] Transport& to(int task) {
    if (is_near(task)) return *near_;
    return *far_;
  }
  // Whether messages to a task go through memory.
  [[nodiscard]] bool is_near(int task) const { return !far_ || near_->is_shown(task); }
  [[nodiscard]] bool is_over_hosts() const { return far_ != nullptr; }
  // Whether each poll for far tasks is a system call.
  [[nodiscard]] bool polls_sockets() const { return far_ && !far_->is_polled_cheaply(); }
  // How many tasks compete for the cores of this node, as far as that is known.
  [[nodiscard]] int tasks_here();
  // Whether another task of this node has polled last on the core of the calling thread.
  [[nodiscard]] bool shares_core() { return near_->shares_core(); }
  void leave_shared_core() { near_->leave_shared_core(); }
  // Grows whenever a task appears or leaves.
  [[nodiscard]] std::uint32_t changes() const {
    return near_->changes() + (far_ ? far_->changes() : 0);
  }

  // Around a round of the dispatcher, for sockets.
  void begin_round() {
    if (far_) far_->begin_round();
  }
  void end_round(bool program_goes_on) {
    if (far_) far_->end_round(program_goes_on);
  }
  // Also those that have waited for the program's next message.
  void send_replies() {
    if (far_) far_->flush();
  }
  // Whether sent messages still wait for room in a socket.
  [[nodiscard]] bool has_unsent() { return far_ && far_->has_unsent(); }
  // Receives what has arrived at sockets.
  void look() {
    if (far_) far_->look();
  }

  // The own bell. Near tasks ring it themselves.
  [[nodiscard]] Bell& bell() { return near_->bell(); }
  void ring();
  void ring_all();
  void wake_attendants();
  void post_attendants();
  // Around a wait of a thread of the program.
  void begin_attendance();
  void end_attendance();
  // After a setting of the bell has changed.
  void bell_changed();
  // Sleeps while the word of the attendants' bell is `seen`, at most `limit_us`. Asks `stays` once,
  // after which everything wakes it.
  void sleep(std::uint32_t seen, std::uint32_t limit_us, FunctionRef<bool()> stays);

 private:
  Ways(std::unique_ptr<NodeTransport> near, int task, int tasks)
      : near_(std::move(near)), task_(task), tasks_(tasks) {}

  Mapping mapping_;  // these outlive near_
  SharedBuffer buffer_;
  std::unique_ptr<NodeTransport> near_;
  std::unique_ptr<TcpTransport> far_;
  int task_;
  int tasks_;
  // Changes of near_ and tasks_here() since then; at first none that can be.
  std::atomic<std::uint64_t> known_here_{~std::uint64_t{0}};
};

}  // namespace shima::lapi
