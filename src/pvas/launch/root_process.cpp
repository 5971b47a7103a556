// The process that can bind the socket starts the root and passes the socket on. So there is one
// root, and the socket always has a listener. The root is orphaned, inherits none of the caller's
// descriptors, and has a separate process group, so that signals for the caller's group do not
// reach a root that others use. It stays in the session, whose terminal its tasks may use.
#include "pvas/launch/root_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "pvas/shared/birth.h"

extern char** environ;

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds time_to_meet{30};
constexpr std::chrono::milliseconds between_tries{2};

// In ../lib/shima relative to the command; in shima/ relative to a library, or beside it.
Result<std::string> root_program() {
  Dl_info info{};
  static const int here = 0;
  std::string own = ::dladdr(&here, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
  // For the main program, dladdr returns argv[0].
  char* const path =
      ::realpath(own.find('/') != std::string::npos ? own.c_str() : "/proc/self/exe", nullptr);
  if (path != nullptr) own = path;
  std::free(path);
  const std::string directory = own.substr(0, own.rfind('/') + 1);
  for (const char* place : {"../lib/shima/", "shima/", "", "../../lib/shima/"}) {
    std::string candidate = directory + place + "pvas-root";
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return fail(Code::no_such_file,
              "the program pvas-root was not found in the installation of " + own);
}

// The root's command line, built before the fork because the child must not allocate. LD_PRELOAD of
// the caller is for programs and would only disturb the root.
struct RootCommand {
  std::string program;
  std::string maker;
  std::string slice;
  std::string slices;
  std::string group;
  const char* mapping;
  std::vector<char*> environment;
};

Result<RootCommand> root_command(const WhichSpace& space) {
  RootCommand command;
  SHIMA_TRY_ASSIGN(command.program, root_program());
  command.maker = std::to_string(::getpid());
  command.slice = std::to_string(space.slice);
  command.slices = std::to_string(space.slices);
  command.group = space.group;
  command.mapping = space.eager ? "eager" : "lazy";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view setting = *entry;
    if (!setting.starts_with("LD_") && !setting.starts_with("GLIBC_TUNABLES="))
      command.environment.push_back(*entry);
  }
  command.environment.push_back(nullptr);
  return command;
}

// In the second child: closes the caller's descriptors and leaves its directory.
[[noreturn]] void become_root(const RootCommand& command, int listener, int to_tell) {
  ::setpgid(0, 0);
  // First moves the listener to a number that no task uses.
  listener = ::fcntl(listener, F_DUPFD, root_files);
  to_tell = ::fcntl(to_tell, F_DUPFD, root_files);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < root_listener; ++fd) ::dup2(nothing, fd);
  ::dup2(listener, root_listener);
  ::dup2(to_tell, root_birth);
  ::close_range(root_files, ~0U, 0);
  if (::chdir("/") == 0)
    ::execle(command.program.c_str(), "pvas-root", command.maker.c_str(), command.slice.c_str(),
             command.slices.c_str(), command.group.c_str(), command.mapping, nullptr,
             command.environment.data());
  tell_of_birth(root_birth, code_of_errno(errno), errno, "starting pvas-root");
  ::_exit(127);
}

Status start_root(const UniqueFd& listener, const WhichSpace& space) {
  SHIMA_TRY_ASSIGN(const RootCommand command, root_command(space));
  SHIMA_TRY_ASSIGN(BirthPipe birth, make_birth_pipe());
  const pid_t first = ::fork();
  if (first < 0) return fail_errno(errno, "creating a space's root");
  if (first == 0) {
    const pid_t second = ::fork();
    if (second == 0) become_root(command, listener.get(), birth.to_tell.get());
    if (second < 0)
      tell_of_birth(birth.to_tell.get(), code_of_errno(errno), errno, "creating a space's root");
    ::_exit(0);
  }
  birth.to_tell = UniqueFd();
  int status = 0;
  while (::waitpid(first, &status, 0) < 0 && errno == EINTR) {
  }
  return hear_of_birth(birth.to_hear, time_to_meet);
}

// Returns whether this process bound the name and so started the root.
Result<bool> try_to_make(const WhichSpace& space) {
  const auto listener = bind_local(space.socket_name);
  if (!listener && listener.error().code == Code::file_exists) return false;
  if (!listener) return std::unexpected(listener.error());
  SHIMA_TRY(listen_local(*listener));
  SHIMA_TRY(start_root(*listener, space));
  return true;
}

}  // namespace

std::string random_key() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  return std::to_string(::getpid()) + "-" + std::to_string(number);
}

Result<UniqueFd> connect_root(const std::string& socket_name) { return connect_local(socket_name); }

Result<UniqueFd> connect_or_make_root(const WhichSpace& space) {
  const auto deadline = Clock::now() + time_to_meet;
  for (;;) {
    auto socket = connect_root(space.socket_name);
    if (socket || socket.error().code != Code::no_such_file) return socket;
    SHIMA_TRY_ASSIGN(const bool made, try_to_make(space));
    if (Clock::now() > deadline) return fail(Code::timed_out, "the space's root does not answer");
    if (!made) std::this_thread::sleep_for(between_tries);  // another process starts it
  }
}

}  // namespace shima::pvas
