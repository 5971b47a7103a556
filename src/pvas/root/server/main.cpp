// pvas-root: the process that owns a space.
//
//   pvas-root CREATOR SLICE SLICES GROUP lazy|eager
//
// The library or `shima exec --one-space` starts it (pvas/launch/root_process.cpp); apart from
// /dev/null its only files are the listening socket and a pipe to its maker. All tasks are its
// children and live in its memory. It only starts them, waits for them, and cleans up after them.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pvas/root/inside/break_fence.h"
#include "pvas/root/server/group.h"
#include "pvas/root/server/reserve.h"
#include "pvas/root/server/server.h"
#include "pvas/shared/birth.h"

namespace {

using namespace shima;
using namespace shima::pvas;

// For a debugger, which cannot tell the tasks' memory apart without it (share/shima/shima-gdb.py).
extern "C" {
__attribute__((used, visibility("default"))) SpaceState* shima_pvas_space_state;
}

// The listener's abstract name, for tasks that start tasks.
Result<std::string> name_of_socket(int listener) {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return fail_errno(errno, "reading the space's socket name");
  const std::size_t before = offsetof(sockaddr_un, sun_path) + 1;
  if (size <= before) return fail(Code::bad_argument, "the space has no name");
  return std::string(name.sun_path + 1, size - before);
}

// The arguments come from root_process.cpp.
int number_in(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

struct Orders {
  pid_t maker;
  Slice slice;
  std::string group;
  bool eager;
};

Result<Space> begin(Slice slice, const UniqueFd& listener) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  // An inherited SIG_IGN would suppress the exit statuses of tasks.
  std::signal(SIGCHLD, SIG_DFL);
  SHIMA_TRY(look_at_break_fence());
  keep_reserve();
  // The files of every task pass through here, the memory of all tasks belongs to one process, and
  // a group's shared memory is a large file.
  for (const auto limit : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE}) {
    rlimit value{};
    ::getrlimit(limit, &value);
    value.rlim_cur = value.rlim_max;
    ::setrlimit(limit, &value);
  }
  SHIMA_TRY_ASSIGN(const std::string name, name_of_socket(listener.get()));
  return Space::make(slice, name);
}

Status be_root(const Orders& orders) {
  UniqueFd listener(root_listener);
  UniqueFd birth(root_birth);
  auto space = begin(orders.slice, listener);
  const Error error = space ? Error{.code = Code::ok, .what = {}} : space.error();
  tell_of_birth(birth.get(), error.code, error.sys_errno, error.what);
  birth = UniqueFd();
  if (!space) return std::unexpected(error);
  shima_pvas_space_state = &space->space_state();
  Status joined;
  if (!orders.group.empty())
    joined = join_group(space->space_state(), orders.slice, orders.group, orders.eager);
  return serve(*space, std::move(listener), orders.maker, std::move(joined));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("pvas-root is started by Shima itself\n", stderr);
    return 2;
  }
  const Status status = be_root({.maker = number_in(argv[1]),
                                 .slice = {number_in(argv[2]), number_in(argv[3])},
                                 .group = argv[4],
                                 .eager = std::string_view(argv[5]) == "eager"});
  if (!status) std::fprintf(stderr, "shima: pvas-root: %s\n", describe(status.error()).c_str());
  return status ? 0 : 1;
}
