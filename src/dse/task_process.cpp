#include "dse/task_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/process/cpu_mask.h"

namespace shima::dse {
namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What has failed in the child, before the program.
struct Trouble {
  enum class Step : int { directory, program } step = Step::program;
  int sys_errno = 0;
};

struct Prepared {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const char* directory = "";
  CpuMask cpus;
  std::array<int, 3> streams{};
  int report = -1;
  pid_t parent = 0;
};

[[noreturn]] void give_up(const Prepared& prepared, Trouble::Step step) {
  const Trouble trouble{step, errno};
  std::ignore = ::write(prepared.report, &trouble, sizeof trouble);
  ::_exit(127);
}

// As `shima run --lapi`: programs of LAPI send addresses of functions and static variables.
void keep_addresses() {
  const int now = ::personality(0xffffffff);
  if (now >= 0) ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
}

[[noreturn]] void be_task(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);
  for (int fd = 0; fd < 3; ++fd) ::dup2(prepared.streams[static_cast<std::size_t>(fd)], fd);
  prepared.cpus.bind_thread();
  keep_addresses();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::chdir(prepared.directory) != 0) give_up(prepared, Trouble::Step::directory);
  ::environ = const_cast<char**>(prepared.environment.data());  // also the PATH of execvp()
  ::execvp(prepared.arguments.front(), prepared.arguments.data());
  give_up(prepared, Trouble::Step::program);
}

CpuMask mask_of(const std::vector<int>& cpus) {
  CpuMask mask;
  for (const int cpu : cpus)
    mask.words[static_cast<std::size_t>(cpu / 64)] |= std::uint64_t{1} << (cpu % 64);
  return mask;
}

std::unexpected<Error> why(const TaskStart& start, const Trouble& trouble) {
  if (trouble.step == Trouble::Step::directory)
    return fail_errno(trouble.sys_errno, "entering the working directory " + start.directory);
  return fail_errno(trouble.sys_errno, "starting " + start.program->front());
}

}  // namespace

Result<TaskProcess> TaskProcess::start(const TaskStart& start) {
  Pipe input;
  if (start.has_input) {
    SHIMA_TRY_ASSIGN(input, make_pipe());
  } else {
    input.read_end = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  SHIMA_TRY_ASSIGN(Pipe output, make_pipe());
  SHIMA_TRY_ASSIGN(Pipe errors, make_pipe());
  SHIMA_TRY_ASSIGN(Pipe report, make_pipe());
  Prepared prepared{
      .arguments = pointers_to(*start.program),
      .environment = pointers_to(start.environment),
      .directory = start.directory.c_str(),
      .cpus = mask_of(start.cpus),
      .streams = {input.read_end.get(), output.write_end.get(), errors.write_end.get()},
      .report = report.write_end.get(),
      .parent = ::getpid()};
  const pid_t child = ::fork();
  if (child == 0) be_task(prepared);
  if (child < 0) return fail_errno(errno, "creating a process for " + start.program->front());
  ::setpgid(child, child);
  report.write_end = UniqueFd();
  Trouble trouble;
  if (::read(report.read_end.get(), &trouble, sizeof trouble) == sizeof trouble) {
    ::waitpid(child, nullptr, 0);
    return why(start, trouble);
  }
  for (const UniqueFd* fd : {&input.write_end, &output.read_end, &errors.read_end})
    if (*fd) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  return TaskProcess{.process = child,
                     .outputs = {std::move(output.read_end), std::move(errors.read_end)},
                     .input = std::move(input.write_end)};
}

}  // namespace shima::dse
