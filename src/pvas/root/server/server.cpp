#include "pvas/root/server/server.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>

#include "base/process/process_handle.h"
#include "pvas/root/server/connection.h"
#include "pvas/root/server/reserve.h"
#include "pvas/root/server/self_test.h"
#include "pvas/shared/wire.h"

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int tick_ms = 1000;
// The limit for the first connection of the creator, while it lives.
constexpr std::chrono::seconds patience{60};

class Server {
 public:
  Server(Space& space, UniqueFd listener, pid_t maker, Status begun)
      : space_(space),
        listener_(std::move(listener)),
        maker_pid_(maker),
        able_(std::move(begun)),
        begun_(Clock::now()) {}

  Status run() {
    SHIMA_TRY(watch());
    while (!time_to_leave()) {
      std::array<epoll_event, 32> events{};
      const int count = ::epoll_wait(poll_.get(), events.data(), events.size(), tick_ms);
      if (count < 0 && errno != EINTR) return fail_errno(errno, "waiting for events");
      for (int i = 0; i < count; ++i) serve_event(events[static_cast<std::size_t>(i)].data.fd);
      if (count > 0) continue;
      tell_changes();  // those for which there was no memory before
      space_.sweep();
    }
    return {};
  }

 private:
  Status watch() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    poll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!signals_ || !poll_) return fail_errno(errno, "creating a root's files");
    SHIMA_TRY(add(listener_.get()));
    maker_ = watch_process(maker_pid_);
    return add(signals_.get());
  }

  // Its exit wakes the server once.
  std::optional<ProcessHandle> watch_process(pid_t process) const {
    auto handle = ProcessHandle::of(process);
    if (!handle) return {};
    if (handle->descriptor() >= 0) std::ignore = add(handle->descriptor(), EPOLLIN | EPOLLONESHOT);
    return *std::move(handle);
  }

  Status add(int fd, unsigned what = EPOLLIN) const {
    epoll_event event{.events = what, .data = {.fd = fd}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return fail_errno(errno, "watching a connection");
    return {};
  }

  static bool lives(const std::optional<ProcessHandle>& process) {
    return process && !process->has_ended();
  }

  bool time_to_leave() const {
    if (!connections_.empty() || !space_.empty()) return false;
    if (arrived_ == 0) return !lives(maker_) || Clock::now() - begun_ > patience;
    return arrived_ >= expected_ || !lives(launcher_);
  }

  void serve_event(int fd) {
    if (fd == listener_.get()) return accept_one();
    if (fd == signals_.get()) return hear_signals();
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.owes()) pay(connection);
    const Status status = caught([&] { return hear(connection); });
    if (status) return;
    if (status.error().code != Code::peer_lost) connection.refuse(status.error());
    part_from(connection);
    connections_.erase(found);
  }

  void accept_one() {
    spare_.take();
    UniqueFd socket = accept_socket();
    if (!socket && (errno == EMFILE || errno == ENFILE))
      return spare_.lend([this, error = errno] { refuse_next(error); });
    if (!socket || !must_be_own_user(socket.get())) return;
    if (!reserve_is_whole()) return Connection(std::move(socket)).refuse(no_memory());
    if (!add(socket.get())) return;
    const int fd = socket.get();
    connections_.emplace(fd, std::move(socket));
  }

  UniqueFd accept_socket() const {
    return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  void refuse_next(int error) const {
    UniqueFd socket = accept_socket();
    if (!socket || !must_be_own_user(socket.get())) return;
    Connection(std::move(socket))
        .refuse({.code = Code::no_memory,
                 .sys_errno = error,
                 .what = "the space's root has no file descriptor left; raise the "
                         "hard limit of open files before the space is created"});
  }

  static Error no_memory() {
    return {.code = Code::no_memory, .sys_errno = ENOMEM, .what = "the space has no memory left"};
  }

  // Closing a connection kills its task.
  void part_from(Connection& connection) {
    // A task that is starting may hold a copy of the socket for a moment; without this, events of
    // it would arrive under a number that another connection has by then.
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, connection.fd(), nullptr);
    if (connection.process != 0) space_.signal(connection.process, SIGKILL);
    if (connection.task) space_.let_go(*connection.task);
  }

  void pay(Connection& connection) {
    connection.pay();
    if (!connection.owes()) watch_for(connection, EPOLLIN);
  }

  void watch_for(const Connection& connection, unsigned what) const {
    epoll_event event{.events = what, .data = {.fd = connection.fd()}};
    ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, connection.fd(), &event);
  }

  Status hear(Connection& connection) {
    SHIMA_TRY_ASSIGN(std::optional<Received> received, connection.hear());
    if (!received) return {};
    const Message& message = received->message;
    switch (message.word) {
      case Word::keep:
        note_arrival(message);
        SHIMA_TRY(able_);
        connection.tell(Word::kept, 0, 0, {});
        return {};
      case Word::spawn:
        SHIMA_TRY(connection.begin_order(*received));
        note_arrival(message);
        break;
      case Word::files:
        SHIMA_TRY(connection.add_files(*received));
        break;
      case Word::signal:
        if (connection.process != 0) space_.signal(connection.process, message.value);
        return {};
      default:
        return fail(Code::bad_argument, "an unknown message");
    }
    if (connection.has_all()) start(connection);
    return {};
  }

  void note_arrival(const Message& message) {
    ++arrived_;
    expected_ = std::max(expected_, message.expected);
    if (message.launcher > 0 && message.launcher != launcher_pid_) {
      launcher_pid_ = message.launcher;
      launcher_ = watch_process(launcher_pid_);
    }
  }

  // Repeats the test only if it had no result.
  Status test_once() {
    SHIMA_TRY(able_);
    if (tested_) return outcome_;
    outcome_ = run_self_test(space_);
    tested_ = outcome_ || outcome_.error().code == Code::unsupported_operation;
    return outcome_;
  }

  Result<Started> start_task_of(const Connection& connection) {
    SHIMA_TRY(test_once());
    SHIMA_TRY_ASSIGN(const SpawnOrder order, connection.read_order());
    return space_.start(order, connection.directory(), connection.files());
  }

  void start(Connection& connection) {
    const auto started = caught([&] { return start_task_of(connection); });
    connection.drop_order();
    if (!started) return connection.refuse(started.error());
    connection.task = started->task;
    connection.process = started->pid;
    connection.tell(Word::started, started->task, started->pid, {});
  }

  void hear_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    tell_changes();
  }

  void tell_changes() {
    for (const Change& change : space_.take_changes()) {
      const auto found = std::ranges::find_if(
          connections_, [&](const auto& entry) { return entry.second.process == change.pid; });
      if (found == connections_.end()) continue;
      Connection& connection = found->second;
      const Word word = WIFSTOPPED(change.status)     ? Word::stopped
                        : WIFCONTINUED(change.status) ? Word::continued
                                                      : Word::ended;
      if (word == Word::ended) connection.process = 0;
      connection.tell(word, change.status, 0, change.failure);
      if (connection.owes()) watch_for(connection, EPOLLIN | EPOLLOUT);
    }
  }

  Space& space_;
  UniqueFd listener_;
  pid_t maker_pid_;
  std::optional<ProcessHandle> maker_;
  Status able_;  // an error if there is no space to serve
  UniqueFd signals_;
  UniqueFd poll_;
  SpareNumber spare_;
  std::map<int, Connection> connections_;
  bool tested_ = false;
  Status outcome_;  // of the self-test
  Clock::time_point begun_;
  int arrived_ = 0;
  int expected_ = 0;
  pid_t launcher_pid_ = 0;
  std::optional<ProcessHandle> launcher_;
};

}  // namespace

Status serve(Space& space, UniqueFd listener, pid_t maker, Status begun) {
  return Server(space, std::move(listener), maker, std::move(begun)).run();
}

}  // namespace shima::pvas
