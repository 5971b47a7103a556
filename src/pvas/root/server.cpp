#include "pvas/root/server.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>

#include "pvas/root/self_test.h"
#include "pvas/wire.h"

namespace shima::pvas {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int tick_ms = 1000;
// For the first one who wants to start a task: it has just made this process.
constexpr std::chrono::seconds patience{60};
constexpr std::size_t largest_order = std::size_t{64} << 20;

struct Connection {
  UniqueFd socket;
  UniqueFd order;  // a memfd
  UniqueFd folder;
  std::size_t files_expected = 0;
  std::vector<TaskFile> files;
  pid_t process = 0;  // while it lives
  std::optional<int> task;
};

Message with_text(Word word, int value, int other, const std::string& text) {
  Message message;
  message.word = word;
  message.value = value;
  message.other = other;
  message.text = {};
  std::memcpy(message.text.data(), text.data(), std::min(text.size(), message.text.size() - 1));
  return message;
}

Result<SpawnOrder> read_order(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "looking at an order");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (info.st_size <= 0 || size > largest_order)
    return fail(Code::bad_argument, "an order of unlikely size");
  std::string bytes(size, '\0');
  if (::pread(fd, bytes.data(), size, 0) != info.st_size)
    return fail_errno(errno, "reading an order");
  return decode_order(bytes);
}

class Server {
 public:
  Server(Space& space, UniqueFd listener, Status begun)
      : space_(space),
        listener_(std::move(listener)),
        able_(std::move(begun)),
        begun_(Clock::now()) {}

  Status run() {
    SHIMA_TRY(watch());
    while (!time_to_leave()) {
      std::array<epoll_event, 32> events{};
      const int count = ::epoll_wait(poll_.get(), events.data(), events.size(), tick_ms);
      if (count < 0 && errno != EINTR) return fail_errno(errno, "waiting for events");
      for (int i = 0; i < count; ++i) serve_event(events[static_cast<std::size_t>(i)].data.fd);
      if (count == 0) space_.sweep();
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
    if (!signals_ || !poll_) return fail_errno(errno, "making a root's files");
    SHIMA_TRY(add(listener_.get()));
    return add(signals_.get());
  }

  Status add(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return fail_errno(errno, "watching a connection");
    return {};
  }

  bool launcher_lives() const { return launcher_ > 0 && ::kill(launcher_, 0) == 0; }

  bool time_to_leave() const {
    if (!connections_.empty() || !space_.empty()) return false;
    if (arrived_ == 0) return Clock::now() - begun_ > patience;
    return arrived_ >= expected_ || !launcher_lives();
  }

  void serve_event(int fd) {
    if (fd == listener_.get()) return accept_one();
    if (fd == signals_.get()) return tell_changes();
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    const Status status = hear(found->second);
    if (status) return;
    if (status.error().code != Code::peer_lost) refuse(found->second, status.error());
    part_from(found->second);
    connections_.erase(found);
  }

  void accept_one() {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket || !must_be_own_user(socket.get()) || !add(socket.get())) return;
    const int fd = socket.get();
    connections_[fd].socket = std::move(socket);
  }

  // Whoever goes takes the task along.
  void part_from(Connection& connection) {
    if (connection.process != 0) space_.signal(connection.process, SIGKILL);
    if (connection.task) space_.let_go(*connection.task);
  }

  static void refuse(Connection& connection, const Error& error) {
    const Status sent = send_message(
        connection.socket.get(),
        with_text(Word::refused, static_cast<int>(error.code), error.sys_errno, error.what));
    static_cast<void>(sent);  // it has gone, which is seen at the next event
  }

  Status hear(Connection& connection) {
    SHIMA_TRY_ASSIGN(Received received, receive_message(connection.socket.get()));
    const Message& message = received.message;
    switch (message.word) {
      case Word::keep:
        note_arrival(message);
        SHIMA_TRY(able_);
        return send_message(connection.socket.get(), with_text(Word::kept, 0, 0, {}));
      case Word::spawn:
        SHIMA_TRY(begin_order(connection, received));
        break;
      case Word::files:
        SHIMA_TRY(add_files(connection, received));
        break;
      case Word::signal:
        if (connection.process != 0) space_.signal(connection.process, message.value);
        return {};
      default:
        return fail(Code::bad_argument, "an unknown message");
    }
    if (connection.files.size() == connection.files_expected) start(connection);
    return {};
  }

  void note_arrival(const Message& message) {
    ++arrived_;
    expected_ = std::max(expected_, message.expected);
    if (message.launcher > 0) launcher_ = message.launcher;
  }

  Status begin_order(Connection& connection, Received& received) {
    if (received.files.size() != 2 || connection.order || connection.task)
      return fail(Code::bad_argument, "an order out of turn");
    note_arrival(received.message);
    connection.order = std::move(received.files[0]);
    connection.folder = std::move(received.files[1]);
    connection.files_expected = static_cast<std::size_t>(received.message.value);
    return {};
  }

  static Status add_files(Connection& connection, Received& received) {
    if (!connection.order ||
        connection.files.size() + received.files.size() > connection.files_expected)
      return fail(Code::bad_argument, "files out of turn");
    for (std::size_t i = 0; i < received.files.size(); ++i)
      connection.files.push_back({std::move(received.files[i]), received.message.numbers[i]});
    return {};
  }

  Status test_once() {
    SHIMA_TRY(able_);
    if (!tested_) outcome_ = test_mends(space_);
    tested_ = true;
    return outcome_;
  }

  Result<Started> start_task_of(Connection& connection) {
    SHIMA_TRY(test_once());
    SHIMA_TRY_ASSIGN(const SpawnOrder order, read_order(connection.order.get()));
    return space_.start(order, connection.folder, connection.files);
  }

  void start(Connection& connection) {
    const auto started = caught([&] { return start_task_of(connection); });
    connection.files.clear();
    connection.order = UniqueFd();
    connection.folder = UniqueFd();
    if (!started) return refuse(connection, started.error());
    connection.task = started->task;
    connection.process = started->pid;
    const Status sent = send_message(connection.socket.get(),
                                     with_text(Word::started, started->task, started->pid, {}));
    static_cast<void>(sent);
  }

  void tell_changes() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    for (const Change& change : space_.take_changes()) {
      const auto found = std::ranges::find_if(
          connections_, [&](const auto& entry) { return entry.second.process == change.pid; });
      if (found == connections_.end()) continue;
      const Word word = WIFSTOPPED(change.status)     ? Word::stopped
                        : WIFCONTINUED(change.status) ? Word::continued
                                                      : Word::ended;
      if (word == Word::ended) found->second.process = 0;
      const Status sent = send_message(found->second.socket.get(),
                                       with_text(word, change.status, 0, change.failure));
      static_cast<void>(sent);
    }
  }

  Space& space_;
  UniqueFd listener_;
  Status able_;  // an error where there is no space to serve
  UniqueFd signals_;
  UniqueFd poll_;
  std::map<int, Connection> connections_;
  bool tested_ = false;
  Status outcome_;  // of the self-test
  Clock::time_point begun_;
  int arrived_ = 0;
  int expected_ = 0;
  pid_t launcher_ = 0;
};

}  // namespace

Status serve(Space& space, UniqueFd listener, Status begun) {
  return Server(space, std::move(listener), std::move(begun)).run();
}

}  // namespace shima::pvas
