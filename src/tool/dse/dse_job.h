// A job, seen from `shima dse run`: its hosts, its tasks, and everything that happens to them.
//
// One thread polls the daemons, the signals and the standard streams. First the daemons come in and
// show their hosts; then the tasks are placed and started; the job ends when all tasks have ended,
// one has been killed, a daemon is lost, or the user says so. Then the daemons end what is left.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "dse/link.h"
#include "dse/plan/placement.h"
#include "lapi/way/meeting_place.h"
#include "tool/dse/console.h"
#include "tool/dse/dse_command.h"
#include "tool/dse/job_hosts.h"
#include "tool/dse/launchers.h"
#include "tool/dse/reception.h"

namespace shima::tool {

class DseJob {
 public:
  // `signals`: of a signalfd; all these signals are blocked.
  DseJob(const DseOptions& options, JobHosts hosts, dse::Topology topology, int signals);
  DseJob(const DseJob&) = delete;
  DseJob& operator=(const DseJob&) = delete;
  ~DseJob();
  [[nodiscard]] Outcome<int> run();
  [[nodiscard]] static sigset_t watched_signals();

 private:
  struct HostState {
    dse::Host host;
    std::unique_ptr<dse::Link> link;  // empty before it comes in, and after its end
    dse::Machine machine;
    bool has_come = false;
    std::size_t owed_bytes = 0;  // of output, to be told that it has been written
  };
  struct TaskState {
    int host = 0;
    bool has_ended = false;
    std::size_t input_bytes = 0;  // under way
  };
  enum class Stage { starting, running, ending };

  // Hosts (dse_hosts.cpp).
  [[nodiscard]] Outcome<void> gather_hosts();
  void welcome(UniqueFd socket);
  void note_machine(dse::Link* link, int number, int rank, const std::string& name,
                    std::string_view cores);
  void serve_newcomers();
  void reap_starters();
  void end_starters();
  [[nodiscard]] std::string missing_hosts() const;

  // Tasks (dse_job.cpp).
  [[nodiscard]] Outcome<void> place();
  [[nodiscard]] Outcome<void> start_tasks();
  void register_handlers(int host);
  void note_exit(int task, int code, int signal);
  void note_failed(int task, int sys_errno, std::string_view what);
  void lose_host(int host, const Error& error);
  void note_code(int code);
  void begin_end();
  void await_end();
  [[nodiscard]] bool have_all_ended() const;
  [[nodiscard]] bool have_all_left() const;

  // Events (dse_events.cpp).
  void pump(int timeout_ms);
  void serve_hosts();
  void pay();
  void read_signals();
  void heed_signal(int signal);
  [[nodiscard]] bool wants_input() const;
  void read_input();

  // What `--show` and `--verbose` print (dse_plan.cpp).
  [[nodiscard]] std::string plan_text() const;
  [[nodiscard]] std::string hosts_with_tasks() const;  // separated by commas

  const DseOptions& options_;
  bool is_alone_;
  dse::Topology topology_;
  int signals_;
  std::vector<HostState> hosts_;
  std::vector<TaskState> tasks_;
  std::vector<dse::Seat> seats_;
  std::unique_ptr<Reception> reception_;
  std::vector<std::unique_ptr<dse::Link>> newcomers_;
  std::vector<Starter> starters_;
  std::unique_ptr<lapi::MeetingPlace> meeting_;
  Console console_;
  Stage stage_ = Stage::starting;
  std::optional<Failure> failure_;  // of the start
  std::set<int> sent_signals_;
  int ends_asked_ = 0;  // by SIGINT or SIGTERM
  std::optional<int> code_;
  bool has_told_failure_ = false;
  std::vector<int> readers_;  // the tasks that get the standard input
  bool is_input_over_ = false;
};

}  // namespace shima::tool
