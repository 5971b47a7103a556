// The tasks inherit the job's memory, so only descendants of this process can join. They start with
// the same address layout, because LAPI programs send addresses of functions and static variables
// to other tasks. The others go on when a task ends. For a task that ends before LAPI_Init, this
// process tells them so.
//
// What a launcher starts meets at a server of this process instead (lapi/way/meeting_place.h).
#include "tool/launch/lapi_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lapi/way/job_memory.h"
#include "lapi/way/meeting_place.h"
#include "net/job_network.h"
#include "tool/launch/mpiexec.h"
#include "tool/launch/one_space.h"
#include "tool/launch/supervise.h"

namespace shima::tool {
namespace {

using lapi::JobMemory;
using lapi::JobPlace;

// Like mpiexec, only the first task reads stdin.
void give_stdin(int task) {
  if (task == 0) return;
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
}

// For this process and those that it starts.
void keep_addresses() {
  const int now = personality(0xffffffff);
  if (now >= 0) personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
}

[[noreturn]] void be_task(const Command& program, const JobPlace& place, bool one_space,
                          const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setenv(lapi::job_variable, lapi::describe(place).c_str(), 1);
  give_stdin(place.task);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (one_space) become_task(program);
  keep_addresses();
  const Failure failure = become(program);
  std::fprintf(stderr, "shima: %s: %s; %s\n", failure.thing.c_str(), failure.rule.c_str(),
               failure.advice.c_str());
  _exit(exit_refused);
}

// The tasks of a job, seen from the process that has started them.
class Job {
 public:
  Job(const Command& program, JobPlace place, bool one_space)
      : program_(program), place_(place), one_space_(one_space) {}

  [[nodiscard]] bool start(const sigset_t& mask) {
    for (int task = 0; task < place_.tasks; ++task) {
      JobPlace place = place_;
      place.task = task;
      const pid_t child = fork();
      if (child == 0) be_task(program_, place, one_space_, mask);
      if (child < 0) return false;
      children_.push_back(child);
      codes_.push_back(-1);
    }
    return true;
  }
  void signal_all(int signal) {
    for (std::size_t i = 0; i < children_.size(); ++i)
      if (codes_[i] < 0) kill(children_[i], signal);
  }
  // Takes the ended tasks; false once all have.
  bool reap() {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = std::ranges::find(children_, ended);
      if (found == children_.end()) continue;
      const auto task = found - children_.begin();
      codes_[static_cast<std::size_t>(task)] =
          WIFEXITED(status) ? WEXITSTATUS(status) : exit_signalled_base + WTERMSIG(status);
      tell_others(static_cast<int>(task), WIFSIGNALED(status));
    }
    return std::ranges::count(codes_, -1) > 0;
  }
  [[nodiscard]] int code() const {
    for (const int code : codes_)
      if (code != 0) return code;
    return 0;
  }

 private:
  // A task that has called LAPI_Init is watched by the others.
  void tell_others(int task, bool by_signal) const {
    for (int context = 0; context < lapi::contexts_of_job; ++context) {
      const auto mapped = lapi::map_job_memory(place_, context);
      if (!mapped) return;
      const JobMemory memory(mapped->bytes(), place_.tasks);
      memory.note_end(task, by_signal);
    }
  }

  const Command& program_;
  JobPlace place_;
  bool one_space_;
  std::vector<pid_t> children_;
  std::vector<int> codes_;
};

void wait_for(Job& job, const sigset_t& watched) {
  while (job.reap()) {
    siginfo_t info;
    const int signal = sigwaitinfo(&watched, &info);
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) job.signal_all(signal);
  }
}

}  // namespace

Outcome<int> run_lapi_job(const Command& program, int tasks, bool one_space) {
  if (tasks > lapi::most_tasks)
    return refuse(fmt::format("-n {}", tasks),
                  fmt::format("a LAPI job has at most {} tasks on a machine", lapi::most_tasks),
                  "start fewer");
  const auto memory = lapi::make_job_memory(tasks);
  if (!memory)
    return refuse("shima run --lapi", describe(memory.error()), "raise the limit, or start fewer");
  const sigset_t watched = watched_signals();
  sigset_t before;
  std::signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would hide the end of tasks
  sigprocmask(SIG_BLOCK, &watched, &before);
  Job job(program, {.descriptor = memory->get(), .task = 0, .tasks = tasks}, one_space);
  const bool started = job.start(before);
  if (!started) job.signal_all(SIGTERM);
  wait_for(job, watched);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (started) return job.code();
  return refuse(program.front(), fmt::format("cannot start {} tasks (fork failed)", tasks),
                "check the limits on processes and memory");
}

// The secret is in the environment alone: launchers pass that on over their own connections.
Outcome<int> run_lapi_launcher(const Command& command) {
  std::vector<SocketAddress> addresses;
  for (const OwnAddress& own : own_addresses()) addresses.push_back(own.address);
  if (addresses.empty()) addresses = shared_with({}, {});
  const auto place = lapi::MeetingPlace::start(addresses);
  if (!place)
    return refuse("shima run --lapi", describe(place.error()), "check this machine's network");
  setenv(lapi::job_variable, lapi::describe((*place)->address()).c_str(), 1);
  keep_addresses();
  return supervise(with_forwarded_settings(command));
}

}  // namespace shima::tool
