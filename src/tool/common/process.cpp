// Starting other programs with fork and exec; the tool has one thread, so that is safe.
#include "tool/common/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/file_text.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

bool is_executable_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<char*> pointers_to(const Command& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

[[noreturn]] void be_asked(const Command& command, const Command& environment, Stderr errors,
                           int answer_fd) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(answer_fd, STDOUT_FILENO);
  dup2(errors == Stderr::capture ? answer_fd : nothing, STDERR_FILENO);
  unsetenv("LD_PRELOAD");
  unsetenv("LD_AUDIT");
  for (const std::string& setting : environment) putenv(const_cast<char*>(setting.c_str()));
  execvp(command.front().c_str(), pointers_to(command).data());
  _exit(127);
}

}  // namespace

std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return fs::path(name);
    return std::nullopt;
  }
  std::istringstream directories(environment_value("PATH"));
  for (std::string directory; std::getline(directories, directory, ':');) {
    fs::path candidate = fs::path(directory.empty() ? "." : directory) / name;
    if (is_executable_file(candidate)) return candidate;
  }
  return std::nullopt;
}

Answer ask(const Command& command, const Command& environment, Stderr errors) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) be_asked(command, environment, errors, ends[1]);
  close(ends[1]);
  Answer answer;
  if (child > 0) {
    answer.output = read_up_to(ends[0], std::string::npos, command.front()).value_or(std::string());
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    answer.status =
        WIFEXITED(status) ? WEXITSTATUS(status) : exit_signalled_base + WTERMSIG(status);
  }
  close(ends[0]);
  return answer;
}

Failure become(const Command& command, Places places) {
  const std::string& name = command.front();
  execvp(name.c_str(), pointers_to(command).data());
  if (places == Places::path_and_working_directory && name.find('/') == std::string::npos)
    execvp(("./" + name).c_str(), pointers_to(command).data());
  return {name, std::string("cannot be started (") + std::strerror(errno) + ")",
          "check the path and its permissions"};
}

fs::path own_path() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

fs::path own_directory() { return own_path().parent_path(); }

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace shima::tool
