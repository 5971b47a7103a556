#include "tool/dse/launchers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dse/introduction.h"
#include "dse/job_variables.h"
#include "dse/plan/words.h"
#include "tool/common/process.h"
#include "tool/dse/job_hosts.h"

namespace shima::tool {
namespace {

// For the shell of another host, to which ssh sends one line.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

Command daemon_command() { return {own_path().string(), "dse", "daemon"}; }

Command ssh_command(const DseOptions& options, const std::string& host) {
  std::string text = options.ssh.empty() ? environment_value("SHIMA_DSE_SSH") : options.ssh;
  if (dse::words_of(text).empty()) text = "ssh -x";
  Command command;
  for (const std::string_view word : dse::words_of(text)) command.emplace_back(word);
  command.push_back(host);
  for (const std::string& word : daemon_command()) command.push_back(quoted(word));
  return command;
}

Command srun_command(const std::vector<dse::Host>& hosts) {
  std::vector<std::string> names;
  for (const dse::Host& host : hosts) names.push_back(host.name);
  return {"srun",
          fmt::format("--nodes={}", hosts.size()),
          fmt::format("--ntasks={}", hosts.size()),
          "--ntasks-per-node=1",
          fmt::format("--nodelist={}", fmt::join(names, ",")),
          "--cpu-bind=none",
          "--mpi=none",
          "--input=all",
          "--export=ALL",  // not what the options of sbatch have set for other steps
          "--kill-on-bad-exit=0"};
}

Command prterun_command(const std::vector<dse::Host>& hosts, const DseOptions& options) {
  std::vector<std::string> names;
  for (const dse::Host& host : hosts) names.push_back(host.name + ":1");
  // By its path, which tells it where its own daemon is on the other hosts.
  const auto path = find_program("prterun");
  Command command{path ? path->string() : "prterun",
                  "--host",
                  fmt::format("{}", fmt::join(names, ",")),
                  "--map-by",
                  "ppr:1:node",
                  "--bind-to",
                  "none",
                  "-x",
                  dse::introduction_variable,
                  "-n",
                  std::to_string(hosts.size())};
  const std::string ssh = options.ssh.empty() ? environment_value("SHIMA_DSE_SSH") : options.ssh;
  if (!ssh.empty()) command.insert(command.end(), {"--prtemca", "plm_ssh_agent", ssh});
  return command;
}

// Another step of the allocation may have all of its processors, for example the one in which this
// process runs: the daemons share them. Only by a variable, because srun before 20.11, which has no
// such steps, refuses the option.
void share_allocation() { setenv("SLURM_OVERLAP", "1", 1); }

// Launchers of jobs act on the signals of a terminal, which shall reach `shima dse run` alone; ssh
// may ask the terminal for a password.
enum class Kind { of_host, of_job, of_job_by_variable };

[[noreturn]] void be_starter(const Command& command, Kind kind, int input, const std::string& line,
                             pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(exit_refused);
  if (kind != Kind::of_host) {
    setpgid(0, 0);
    share_allocation();
  }
  if (kind == Kind::of_job_by_variable) setenv(dse::introduction_variable, line.c_str(), 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const Failure failure = become(command);
  std::fprintf(stderr, "shima: %s: %s; %s\n", failure.thing.c_str(), failure.rule.c_str(),
               failure.advice.c_str());
  _exit(exit_refused);
}

// A line fits into a pipe, so writing it does not wait for the reader.
Outcome<pid_t> start(const Command& command, Kind kind, const dse::Introduction& introduction) {
  int ends[2];
  const std::string line = describe(introduction);
  if (pipe2(ends, O_CLOEXEC) != 0)
    return refuse(command.front(), fmt::format("no pipe to it ({})", std::strerror(errno)),
                  "raise the limit of open files (ulimit -n)");
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  if (kind != Kind::of_job_by_variable)
    std::ignore = write(write_end.get(), line.data(), line.size());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) be_starter(command, kind, read_end.get(), line, parent);
  if (child < 0)
    return refuse(command.front(), fmt::format("cannot fork ({})", std::strerror(errno)),
                  "check the limits on processes and memory");
  return child;
}

std::string chosen_launcher(const DseOptions& options) {
  if (options.launcher != "auto") return options.launcher;
  if (is_in_slurm()) return "slurm";
  const bool is_in_other_allocation =
      !environment_value("PBS_JOBID").empty() || !environment_value("LSB_JOBID").empty();
  return is_in_other_allocation && find_program("prterun") ? "prrte" : "ssh";
}

Outcome<Starter> start_all(const std::vector<dse::Host>& hosts, Command command, Kind kind,
                           const ServiceAddress& place) {
  Starter starter{.process = 0, .name = command.front(), .hosts = {}};
  for (int host = 0; host < static_cast<int>(hosts.size()); ++host) starter.hosts.push_back(host);
  for (const std::string& word : daemon_command()) command.push_back(word);
  const auto child = start(command, kind, {-1, place});
  if (!child) return std::unexpected(child.error());
  starter.process = *child;
  return starter;
}

}  // namespace

Outcome<std::vector<Starter>> start_daemons(const std::vector<dse::Host>& hosts,
                                            const DseOptions& options,
                                            const ServiceAddress& place) {
  std::vector<Starter> starters;
  const std::string launcher = chosen_launcher(options);
  if (launcher != "ssh") {
    auto all = launcher == "slurm" ? start_all(hosts, srun_command(hosts), Kind::of_job, place)
                                   : start_all(hosts, prterun_command(hosts, options),
                                               Kind::of_job_by_variable, place);
    if (!all) return std::unexpected(all.error());
    starters.push_back(*std::move(all));
    return starters;
  }
  for (int host = 0; host < static_cast<int>(hosts.size()); ++host) {
    const std::string& name = hosts[static_cast<std::size_t>(host)].name;
    const Command command = is_this_host(name) ? daemon_command() : ssh_command(options, name);
    const auto child = start(command, Kind::of_host, {host, place});
    if (!child) {
      for (const Starter& one : starters) kill(one.process, SIGTERM);
      return std::unexpected(child.error());
    }
    starters.push_back({*child, command.front(), {host}});
  }
  return starters;
}

}  // namespace shima::tool
