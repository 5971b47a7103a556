// The launcher watches the processes that it started, so this process stays, with its connections
// to the launcher open; the task gets copies of them. Signals are forwarded, and this process ends
// like the task, so the launcher sees nothing unusual.
//
// Ranks of one job on one node need no configuration to meet: they have the same launcher, and its
// process names their space.
#include "tool/launch/one_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "pvas/launch/program.h"
#include "pvas/launch/root_process.h"
#include "pvas/launch/spawn.h"
#include "pvas/launch/stand_in.h"

namespace shima::tool {
namespace {

struct Launcher {
  pid_t pid = 0;
  std::string key;
};

struct ProcessLine {
  std::string name;
  pid_t parent = 0;
  std::string start;  // its start time, because process IDs are reused
};

// /proc/PID/stat: "pid (name) state ppid ... starttime", where the name may hold anything.
ProcessLine look_at(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  ProcessLine line;
  if (open == std::string::npos || close == std::string::npos) return line;
  line.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string word;
  constexpr int parent_field = 2;  // counted from the state
  constexpr int start_field = 20;
  for (int field = 1; rest >> word; ++field) {
    if (field == parent_field) std::from_chars(word.data(), word.data() + word.size(), line.parent);
    if (field == start_field) line.start = word;
  }
  return line;
}

// The daemon that started this rank, possibly through a script; the parent if no known daemon is
// found.
Launcher find_launcher() {
  // The kernel truncates names to 15 characters.
  static const std::set<std::string> daemons{
      "hydra_pmi_proxy", "hydra_pmi_prox", "mpiexec", "mpiexec.hydra", "prted", "prterun", "prte",
      "orted",           "orterun",        "mpirun",  "slurmstepd"};
  Launcher launcher{getppid(), {}};
  for (pid_t pid = getppid(); pid > 1;) {
    const ProcessLine line = look_at(pid);
    if (daemons.contains(line.name) || line.name.starts_with("mpiexec")) {
      launcher.pid = pid;
      break;
    }
    pid = line.parent;
  }
  const std::string job = environment_value("PMIX_NAMESPACE") + environment_value("SLURM_STEP_ID");
  const auto digest = std::hash<std::string>{}(job);
  launcher.key = fmt::format("{}-{}-{:x}", launcher.pid, look_at(launcher.pid).start, digest);
  return launcher;
}

int number_in(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* variable : variables) {
    const std::string text = environment_value(variable);
    int number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && parsed.ec == std::errc{}) return number;
  }
  return otherwise;
}

int ranks_here() { return number_in({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 0); }

bool is_first_here() {
  return number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, 0) == 0;
}

// PMIx's shared-memory store needs the same address in every process, which is impossible in one
// space.
constexpr const char* store_variable = "PMIX_MCA_gds";
constexpr const char* store_without_addresses = "hash";

void set_for_tasks(std::vector<std::string>& environment) {
  const std::string begin = std::string(store_variable) + '=';
  for (const std::string& entry : environment)
    if (entry.starts_with(begin)) return;
  if (!environment_value("PMIX_NAMESPACE").empty())
    environment.push_back(begin + store_without_addresses);
}

Result<pvas::SpawnRequest> request_for(const Command& program, const Launcher& launcher) {
  if (*SHIMA_SANITIZER_RUNTIME != '\0')
    return fail(Code::unsupported_operation, "programs with sanitizers need fixed addresses");
  SHIMA_TRY_ASSIGN(const pvas::Program found, pvas::find_program(program.front(), program));
  SHIMA_TRY_ASSIGN(pvas::SpawnRequest request, pvas::like_this_process(found));
  set_for_tasks(request.order.environment);
  request.order.process_group = pvas::StandIn::group_for_tasks();
  request.launcher = launcher.pid;
  request.expected = ranks_here();
  return request;
}

// Only the task uses these streams. If it closes them, the other end must see the end of file.
void let_go_of_streams() {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
}

Result<pvas::StartedTask> start_task(const pvas::SpawnRequest& request, const Launcher& launcher) {
  SHIMA_TRY_ASSIGN(UniqueFd socket,
                   pvas::connect_or_make_root({pvas::socket_name_for(launcher.key)}));
  return pvas::StartedTask::start(std::move(socket), request);
}

void say_why_not(const Command& program, const Error& error) {
  if (environment_value("SHIMA_ONE_SPACE") == "required") {
    std::fprintf(stderr, "shima: %s cannot be a task, and SHIMA_ONE_SPACE requires it: %s\n",
                 program.front().c_str(), describe(error).c_str());
    std::exit(exit_refused);
  }
  if (!is_first_here()) return;
  std::fprintf(stderr, "shima: %s runs as an ordinary process: %s\n", program.front().c_str(),
               describe(error).c_str());
}

[[noreturn]] void stand_in_for(pvas::StandIn& stand_in, pvas::StartedTask task) {
  let_go_of_streams();
  prctl(PR_SET_NAME, "shima-rank");
  std::vector<pvas::StartedTask> tasks;
  tasks.push_back(std::move(task));
  const auto statuses = stand_in.wait_for(tasks);
  if (statuses) pvas::end_like(statuses->front());
  std::fprintf(stderr, "shima: %s\n", describe(statuses.error()).c_str());
  pvas::end_like(SIGKILL);  // the task will die too: its life is tied to this process's connection
}

}  // namespace

int launcher_process() { return find_launcher().pid; }

void prepare_launcher_for_tasks() { setenv(store_variable, store_without_addresses, 0); }

void become_task(const Command& program) {
  const Launcher launcher = find_launcher();
  const auto request = request_for(program, launcher);
  if (!request) return say_why_not(program, request.error());
  pvas::StandIn stand_in;  // after the request, which records the task's signals
  auto task = start_task(*request, launcher);
  if (!task) return say_why_not(program, task.error());
  stand_in_for(stand_in, *std::move(task));
}

}  // namespace shima::tool
