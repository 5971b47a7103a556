// Meeting, and connections to other tasks: who connects, and how they end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/process/quiet_thread.h"
#include "lapi/stream/connection.h"
#include "lapi/way/early_connection.h"
#include "lapi/way/message.h"
#include "lapi/way/tcp_transport.h"
#include "net/own_socket.h"

namespace shima::lapi {
namespace {

static_assert(Connection::head_bytes == message_head_bytes);

constexpr auto meeting_timeout = std::chrono::seconds(60);
constexpr auto endpoint_timeout = std::chrono::seconds(3);

SocketAddress own_end_of(int socket) {
  SocketAddress own{};
  socklen_t len = sizeof own;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &len);
  own.sin6_port = 0;
  return own;
}

bool is_on_this_host(int socket) {
  SocketAddress other{};
  socklen_t len = sizeof other;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&other), &len);
  return name_of(other) == name_of(own_end_of(socket));
}

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::join(const ServiceAddress& place,
                                                         const TaskNumber& number,
                                                         Carrier carrier) {
  std::unique_ptr<TcpTransport> made(new TcpTransport(number));
  if (!made->epoll_ || !made->wake_ || !made->nudge_)
    return fail_errno(errno, "creating an epoll instance and two eventfds");
  made->choose_carrier(carrier);
  SHIMA_TRY(made->meet(place));
  return made;
}

void TcpTransport::choose_carrier(Carrier carrier) {
  auto opened = open_fabric(carrier, {.own = number_.task, .all = number_.tasks});
  if (opened)
    fabric_ = *std::move(opened);
  else
    log(carrier == Carrier::ucx ? LogLevel::warn : LogLevel::info,
        "LAPI: data between hosts goes by TCP, because UCX cannot be used: {}",
        opened.error().what.c_str());
}

Status TcpTransport::meet(const ServiceAddress& place) {
  Result<UniqueFd> reached = take_early_connection();
  if (!*reached) reached = connect_to(place, endpoint_timeout);  // the next may be the right one
  if (!reached) reached = connect_to(place, meeting_timeout);
  if (!reached)
    return fail(Code::bad_handle,
                fmt::format("the meeting place of the job, `shima run --lapi`, cannot be reached "
                            "(tried: {}); it must run until the job has ended, and no firewall may "
                            "be between the hosts",
                            reached.error().what.c_str()),
                reached.error().sys_errno);
  meeting_ = *std::move(reached);
  keep_from_children(meeting_.get());
  give_up_after(meeting_.get(), meeting_timeout);
  SHIMA_TRY(start_server(place));
  MeetingNotice notice{.kind = MeetingNotice::Kind::join,
                       .context = number_.context,
                       .task = number_.task,
                       .tasks = number_.tasks,
                       .host = number_.host,
                       .address = server_->address()};
  if (!send_notice(meeting_.get(), notice) ||
      !receive_all(meeting_.get(), &memory_, sizeof memory_))
    return fail_errno(errno, "joining the job at its meeting place");
  if (memory_.format != meeting_format || memory_.kind == MeetingNotice::Kind::refused)
    return fail(Code::not_same,
                fmt::format("`shima run --lapi` is of another version of Shima (format {:#x}; this "
                            "task has {:#x}); install one version on all hosts",
                            memory_.format, meeting_format));
  if (memory_.kind != MeetingNotice::Kind::mismatch) return {};
  return fail(Code::not_same,
              fmt::format("the tasks do not form one job: this is task {} of {}, and there is "
                          "another one with this number or another number of tasks (task {} of "
                          "{}); start the job once under `shima run --lapi`",
                          number_.task, number_.tasks, memory_.task, memory_.tasks));
}

// At the address that leads to the meeting place, so that networks that lead elsewhere cannot
// reach it. On the host of the meeting place, at all addresses of the place: others know which of
// them leads here.
Status TcpTransport::start_server(const ServiceAddress& place) {
  Server::Handlers handlers;
  handlers.message_bytes = sizeof(TaskHello);
  handlers.serve = [this](Server&, Server::Visitor& visitor) { return welcome(visitor); };
  std::vector<SocketAddress> own{own_end_of(meeting_.get())};
  if (is_on_this_host(meeting_.get())) {
    const auto all = std::span(place.endpoints).first(place.endpoint_count);
    own.assign(all.begin(), all.end());
    for (SocketAddress& each : own) each.sin6_port = 0;
  }
  SHIMA_TRY_ASSIGN(
      server_, Server::start(own, {.most_strangers = 64, .most_clients = 64}, std::move(handlers)));
  return {};
}

// Takes the socket from the server. The other task may send, leave and say so to the meeting place
// as soon as it has the answer, so the connection is adopted before that can be heard.
bool TcpTransport::welcome(Server::Visitor& visitor) {
  TaskHello hello;
  std::memcpy(&hello, visitor.message.data(), sizeof hello);
  const std::lock_guard hold(adopting_);
  if (hello.task < 0 || hello.task >= number_.task || bell_ == nullptr || has_left_ ||
      connection(hello.task) != nullptr)
    return false;
  const bool by_fabric = fabric_ && hello.has_fabric != 0;
  if (send_all(visitor.socket.get(), by_fabric ? &task_accepted_by_fabric : &task_accepted, 1))
    adopt(hello.task, {std::move(visitor.socket), by_fabric});
  return false;
}

Status TcpTransport::settle(const SharedRef& made, Bell& bell) {
  {
    const std::lock_guard hold(adopting_);
    bell_ = &bell;
  }
  const MeetingNotice notice{.kind = MeetingNotice::Kind::settled, .memory = made};
  if (!send_notice(meeting_.get(), notice)) return fail_errno(errno, "joining the job");
  close_if_unreachable(meeting_.get(), node_timeout());
  return {};
}

Status TcpTransport::watch(Events events) {
  events_ = std::move(events);
  SHIMA_TRY_ASSIGN(thread_, start_quiet_thread([this] { run(); }));
  SHIMA_TRY_ASSIGN(connector_, start_quiet_thread([this] { connect_all(); }));
  return {};
}

// Asks for a connection, if the task is there; messages wait until then.
void TcpTransport::want(int task) {
  Peer& there = peer(task);
  if (there.shown != Standing::running || there.is_lost || there.is_wanted.exchange(true)) return;
  if (task > number_.task)
    order_connection(task);
  else
    tell_place({.kind = MeetingNotice::Kind::ask, .task = task});
}

void TcpTransport::order_connection(int task) {
  const std::lock_guard hold(ordering_);
  peer(task).is_connecting = true;
  orders_.push_back(task);
  ordered_.notify_all();
}

// The connecting thread: a connect may take long, and nothing else may wait for it.
void TcpTransport::connect_all() {
  std::unique_lock lock(ordering_);
  while (true) {
    ordered_.wait(lock, [&] { return stopping_ || !orders_.empty(); });
    if (stopping_) return;
    const int task = orders_.front();
    orders_.pop_front();
    lock.unlock();
    if (connection(task) == nullptr) connect(task);
    peer(task).is_connecting = false;
    changed();
    lock.lock();
  }
}

// A task that refuses may be about to leave, which the meeting place says soon; else once more. The
// other task hears of a failure too: it waits for the connection.
void TcpTransport::connect(int task) {
  auto reached = reach_peer(task);
  if (!reached && still_runs(task)) reached = reach_peer(task);
  if (reached) {
    const std::lock_guard hold(adopting_);
    return adopt(task, *std::move(reached));
  }
  if (peer(task).shown != Standing::running || peer(task).is_lost || stopping_) return;
  log(LogLevel::error, "LAPI: task {} cannot be reached: {}", task, describe(reached.error()));
  tell_place({.kind = MeetingNotice::Kind::unreachable, .task = task});
  const std::lock_guard hold(ordering_);
  unreachable_.push_back(task);
  kick();
}

// Whether the task is there and neither leaves nor ends within a moment.
bool TcpTransport::still_runs(int task) {
  const auto gone = [&] {
    return stopping_ || peer(task).shown != Standing::running || peer(task).is_lost;
  };
  std::unique_lock lock(ordering_);
  return !ordered_.wait_for(lock, end_grace, gone);
}

Result<TcpTransport::Reached> TcpTransport::reach_peer(int task) {
  ServiceAddress address;
  {
    const std::lock_guard hold(ordering_);
    address = addresses_[static_cast<std::size_t>(task)];
  }
  SHIMA_TRY_ASSIGN(UniqueFd socket, connect_to(address, node_timeout()));
  const TaskHello hello{number_.task, fabric_ ? 1U : 0U};
  std::byte answer{};
  if (!send_all(socket.get(), &hello, sizeof hello) ||
      !receive_all(socket.get(), &answer, sizeof answer) ||
      (answer != task_accepted && answer != task_accepted_by_fabric))
    return fail_errno(errno == 0 ? ECONNREFUSED : errno, "connecting to a task");
  return Reached{std::move(socket), answer == task_accepted_by_fabric};
}

// The caller holds adopting_.
void TcpTransport::adopt(int task, Reached reached) {
  const int socket = reached.socket.get();
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  probe_when_silent(socket, node_timeout());
  Peer& there = peer(task);
  if (reached.by_fabric && fabric_)
    there.owned = fabric_->carry(std::move(reached.socket), epoll_.get(), task);
  else
    there.owned = std::make_unique<Connection>(std::move(reached.socket), epoll_.get(), task);
  const std::size_t count = open_count_.load();
  open_[count].store(there.owned.get(), std::memory_order_release);
  there.connection.store(there.owned.get(), std::memory_order_release);
  open_count_.store(count + 1, std::memory_order_release);
  changed();
  if (fabric_ && !has_clock_.exchange(true)) kick();
}

void TcpTransport::tell_place(const MeetingNotice& notice) {
  const std::lock_guard hold(telling_);
  std::ignore = send_notice(meeting_.get(), notice);
}

// Waits until the kernel has taken everything; a task that does not receive loses it in the end.
void TcpTransport::send_all_gathered() {
  const auto until = Clock::now() + node_timeout();
  for (std::size_t i = 0; i < open_count_.load(); ++i) {
    Stream& stream = *open_[i].load();
    while (is_unsent(stream) && Clock::now() < until) stream.flush_waiting();
    if (is_unsent(stream))
      log(LogLevel::error,
          "LAPI: messages to task {} are dropped: it has not received for {} s while this task "
          "leaves",
          stream.task(), node_timeout().count());
  }
}

// What the kernel has is looked at only when no thread receives any more. All streams are looked at
// in each round, which drops what arrives: a task that does not receive may not stop the others.
void TcpTransport::wait_until_delivered(std::chrono::seconds limit, bool also_by_kernel) {
  const auto until = Clock::now() + limit;
  std::vector<Stream*> late;
  do {
    if (!late.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    late.clear();
    for (std::size_t i = 0; i < open_count_.load(); ++i) {
      Stream& stream = *open_[i].load();
      if (stream.is_kernels() && !also_by_kernel) continue;
      if (!peer(stream.task()).is_lost && !stream.is_delivered()) late.push_back(&stream);
    }
  } while (!late.empty() && Clock::now() < until);
  for (const Stream* stream : late)
    if (also_by_kernel && !stream->is_kernels())
      log(LogLevel::error,
          "LAPI: task {} has not received the last messages for {} s; what UCX still has is "
          "dropped",
          stream->task(), limit.count());
}

void TcpTransport::show_left() {
  if (bell_ == nullptr || has_left_.exchange(true)) return;
  send_all_gathered();
  const std::uint64_t meetings = own_meetings_;
  tell_place({.kind = MeetingNotice::Kind::goodbye, .meetings = meetings});
  const std::lock_guard hold(adopting_);
  for (std::size_t i = 0; i < open_count_.load(); ++i) open_[i].load()->finish();
  if (fabric_) wait_until_delivered(std::chrono::seconds(1), false);
}

void TcpTransport::leave() {
  {
    const std::lock_guard hold(ordering_);
    stopping_ = true;
    ordered_.notify_all();
  }
  kick();
  if (thread_.joinable()) thread_.join();
  if (connector_.joinable()) connector_.join();
  show_left();
  server_.reset();
}

TcpTransport::~TcpTransport() {
  leave();
  wait_until_delivered(node_timeout(), true);
  keep_no_longer(meeting_.get());
}

}  // namespace shima::lapi
