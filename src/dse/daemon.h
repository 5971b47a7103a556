// The daemon of a host: starts tasks when an active message says so, carries their standard
// streams, and reports how they end.
//
// It is two processes. The outer one starts the inner one, which does the work, and kills all that
// is left when that has ended, in whatever way. If the outer one is killed, the inner one ends the
// tasks. The inner one has one thread, which sleeps until something happens. The end of its
// connection to `shima dse run` ends the tasks: they get SIGTERM, and after a time SIGKILL.
#pragma once

#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "dse/introduction.h"
#include "dse/link.h"
#include "dse/orders.h"
#include "dse/task_process.h"

namespace shima::dse {

class Daemon {
 public:
  static constexpr auto grace = std::chrono::seconds(1);  // between SIGTERM and SIGKILL

  // Connects to `run` and shows it this host. `signals`: of a signalfd, all blocked.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(const Introduction& introduction,
                                                             int signals);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Until the job ends; an error if the connection is lost.
  [[nodiscard]] Status run();
  // The signals that signalfd must report.
  [[nodiscard]] static sigset_t watched_signals();

 private:
  struct Task {
    TaskProcess process;
    bool has_ended = false;
    std::string waiting;  // input
    bool is_input_over = false;
  };

  Daemon(Link link, int signals) : link_(std::move(link)), signals_(signals) {}
  void register_handlers();
  [[nodiscard]] Status start_tasks(std::string_view data);
  void start_task(const StartOrder& order, const TaskOrder& task);
  [[nodiscard]] std::vector<std::string> environment_of(const StartOrder& order, int task) const;
  void signal_tasks(int signal);
  void take_input(int task, std::string_view data);
  void begin_end();
  [[nodiscard]] bool is_over();

  void wait();
  void serve_output(int number, Task& task, std::size_t which);
  void serve_input(int number, Task& task);
  void read_signals();
  void reap();
  void note_end(pid_t process, int status);

  Link link_;
  int signals_;
  UniqueFd memory_;  // of the LAPI job, if all its tasks are here
  int job_tasks_ = 0;
  std::map<int, Task> tasks_;                 // of this host
  std::size_t window_ = output_window_bytes;  // how much more output may be sent
  std::optional<Clock::time_point> kill_at_;  // the end has begun
  bool is_lost_ = false;                      // the connection
  bool has_children_ = true;
};

// `shima dse daemon`: the outer process; the exit code.
[[nodiscard]] int run_daemon();

}  // namespace shima::dse
