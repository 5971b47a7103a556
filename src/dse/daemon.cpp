#include "dse/daemon.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/process/launcher.h"
#include "dse/descendants.h"
#include "dse/job_variables.h"
#include "dse/machine_view.h"
#include "lapi/way/job_memory.h"

namespace shima::dse {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

sigset_t Daemon::watched_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Introduction& introduction, int signals) {
  SHIMA_TRY_ASSIGN(UniqueFd socket, connect_to_run(introduction));
  std::unique_ptr<Daemon> daemon(new Daemon(Link(std::move(socket)), signals));
  daemon->register_handlers();
  Packed header;
  header.number(introduction.number).number(launcher_number().rank).text(host_name());
  daemon->link_.send(to_run::machine, header, describe(machine_here()));
  return daemon;
}

// The only functions that a message can call.
void Daemon::register_handlers() {
  link_.set(to_daemon::start,
            [this](Unpacked&, std::string_view data) { return start_tasks(data); });
  link_.set(to_daemon::signal, [this](Unpacked& header, std::string_view) -> Status {
    signal_tasks(header.count(NSIG - 1));
    return {};
  });
  link_.set(to_daemon::input, [this](Unpacked& header, std::string_view data) -> Status {
    take_input(header.count(), data);
    return {};
  });
  link_.set(to_daemon::taken, [this](Unpacked& header, std::string_view) -> Status {
    window_ += static_cast<std::size_t>(header.count(output_window_bytes));
    return {};
  });
  link_.set(to_daemon::end, [this](Unpacked&, std::string_view) -> Status {
    begin_end();
    return {};
  });
}

// --- orders -------------------------------------------------------------------------------------

Status Daemon::start_tasks(std::string_view data) {
  SHIMA_TRY_ASSIGN(const StartOrder order, unpack_start(data));
  if (!tasks_.empty()) return fail(Code::bad_argument, "a second order to start tasks");
  if (order.meeting.empty()) {
    auto memory = lapi::make_job_memory(order.job_tasks);
    if (!memory) {
      link_.send(to_run::failed, Packed().number(order.tasks.front().task).number(0),
                 describe(memory.error()));
      return {};
    }
    memory_ = *std::move(memory);
  }
  job_tasks_ = order.job_tasks;
  for (const TaskOrder& task : order.tasks) start_task(order, task);
  return {};
}

void Daemon::start_task(const StartOrder& order, const TaskOrder& task) {
  auto started = TaskProcess::start({.program = &order.program,
                                     .environment = environment_of(order, task.task),
                                     .directory = order.directory,
                                     .cpus = task.cpus,
                                     .has_input = task.has_input});
  if (!started) {
    link_.send(to_run::failed, Packed().number(task.task).number(started.error().sys_errno),
               describe(started.error()));
    return;
  }
  link_.send(to_run::started, Packed().number(task.task).number(started->process));
  tasks_[task.task].process = *std::move(started);
}

std::vector<std::string> Daemon::environment_of(const StartOrder& order, int task) const {
  std::vector<std::string> environment = order.environment;
  environment.push_back(fmt::format("{}={}", task_variable, task));
  environment.push_back(fmt::format("{}={}", tasks_variable, order.job_tasks));
  const std::string lapi_job =
      memory_ ? lapi::describe({memory_.get(), task, order.job_tasks}) : order.meeting;
  environment.push_back(fmt::format("{}={}", lapi::job_variable, lapi_job));
  return environment;
}

// The group of a task has the programs that it has started, too.
void Daemon::signal_tasks(int signal) {
  for (const auto& [number, task] : tasks_)
    if (!task.has_ended) ::kill(-task.process.process, signal);
}

void Daemon::take_input(int number, std::string_view data) {
  const auto found = tasks_.find(number);
  if (found == tasks_.end() || found->second.has_ended || !found->second.process.input) return;
  Task& task = found->second;
  if (data.empty()) task.is_input_over = true;
  task.waiting += data;
  serve_input(number, task);
}

// --- the end ------------------------------------------------------------------------------------

void Daemon::begin_end() {
  if (kill_at_) return;
  kill_at_ = Clock::now() + grace;
  signal_tasks(SIGTERM);
  signal_tasks(SIGCONT);  // a stopped one acts on it only then
  for (const pid_t process : descendants()) ::kill(process, SIGTERM);
}

// All processes have ended, and what they have written has been sent.
bool Daemon::is_over() {
  if (!kill_at_ || has_children_) return false;
  const bool has_output = std::ranges::any_of(tasks_, [](const auto& task) {
    return task.second.process.outputs[0] || task.second.process.outputs[1];
  });
  return is_lost_ || (!has_output && !link_.has_unsent());
}

Status Daemon::run() {
  Status end;
  while (!is_over()) {
    wait();
    if (!is_lost_) {
      end = caught([&] { return link_.receive(); });
      if (!end) {
        is_lost_ = true;
        begin_end();
      }
    }
    reap();
    if (kill_at_ && Clock::now() >= *kill_at_ && has_children_) kill_descendants();
  }
  if (!is_lost_) link_.finish(std::chrono::seconds(5));
  return end;
}

// --- events -------------------------------------------------------------------------------------

// Sleeps until something happens, and serves the streams.
void Daemon::wait() {
  std::vector<pollfd> watched{{signals_, POLLIN, 0}, {link_.socket(), POLLIN, 0}};
  if (is_lost_) watched[1].fd = -1;
  if (link_.has_unsent()) watched[1].events |= POLLOUT;
  for (const auto& [number, task] : tasks_) {
    for (const UniqueFd& output : task.process.outputs)
      watched.push_back({window_ > 0 || is_lost_ ? output.get() : -1, POLLIN, 0});
    const bool has_input = !task.waiting.empty();
    watched.push_back({has_input ? task.process.input.get() : -1, POLLOUT, 0});
  }
  int timeout_ms = -1;
  if (kill_at_ && has_children_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*kill_at_ - Clock::now());
    timeout_ms = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  } else if (kill_at_ && (window_ > 0 || is_lost_)) {
    timeout_ms = 0;  // only what is in the pipes comes now
  }
  if (::poll(watched.data(), watched.size(), timeout_ms) < 0) return;
  if (watched[0].revents != 0) read_signals();
  if ((watched[1].revents & POLLOUT) != 0) link_.flush();
  const pollfd* at = watched.data() + 2;
  for (auto& [number, task] : tasks_) {
    for (std::size_t which = 0; which < 2; ++which, ++at)
      if (at->revents != 0 || (kill_at_ && !has_children_)) serve_output(number, task, which);
    if ((at++)->revents != 0) serve_input(number, task);
  }
}

// Sends what a task has written. After the end of all processes nothing more comes, also where
// another process has kept the pipe open.
void Daemon::serve_output(int number, Task& task, std::size_t which) {
  UniqueFd& output = task.process.outputs[which];
  if (!output || (window_ == 0 && !is_lost_)) return;
  std::array<char, most_chunk_bytes> chunk;
  const std::size_t most = is_lost_ ? chunk.size() : std::min(window_, chunk.size());
  const ssize_t got = ::read(output.get(), chunk.data(), most);
  const bool is_empty = got < 0 && (errno == EAGAIN || errno == EINTR);
  if (is_empty && (!kill_at_ || has_children_)) return;
  const std::size_t len = got > 0 ? static_cast<std::size_t>(got) : 0;
  if (len == 0) output = UniqueFd();
  if (is_lost_) return;
  window_ -= len;
  link_.send(to_run::output, Packed().number(number).number(static_cast<std::int64_t>(which) + 1),
             {chunk.data(), len});
}

// Writes what the task's input takes. A task that does not read any more loses it.
void Daemon::serve_input(int number, Task& task) {
  const UniqueFd& input = task.process.input;
  std::size_t done = 0;
  if (!task.waiting.empty()) {
    const ssize_t written = ::write(input.get(), task.waiting.data(), task.waiting.size());
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    done = written < 0 ? task.waiting.size() : static_cast<std::size_t>(written);
    if (written < 0) task.is_input_over = true;
    task.waiting.erase(0, done);
  }
  if (task.is_input_over && task.waiting.empty()) task.process.input = UniqueFd();
  if (done > 0 && !is_lost_)
    link_.send(to_run::taken, Packed().number(number).number(static_cast<std::int64_t>(done)));
}

void Daemon::read_signals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) {
      is_lost_ = true;  // this daemon ends, and its connection with it
      begin_end();
    }
}

void Daemon::reap() {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) note_end(ended, status);
  has_children_ = ended == 0;
}

void Daemon::note_end(pid_t process, int status) {
  for (auto& [number, task] : tasks_) {
    if (task.process.process != process || task.has_ended) continue;
    task.has_ended = true;
    task.process.input = UniqueFd();
    task.waiting.clear();
    const bool is_killed = WIFSIGNALED(status);
    if (memory_)
      for (int context = 0; context < lapi::contexts_of_job; ++context) {
        const auto mapped = lapi::map_job_memory({memory_.get(), number, job_tasks_}, context);
        if (mapped) lapi::JobMemory(mapped->bytes(), job_tasks_).note_end(number, is_killed);
      }
    if (!is_lost_)
      link_.send(to_run::exited, Packed()
                                     .number(number)
                                     .number(is_killed ? -1 : WEXITSTATUS(status))
                                     .number(is_killed ? WTERMSIG(status) : 0));
  }
}

}  // namespace shima::dse
