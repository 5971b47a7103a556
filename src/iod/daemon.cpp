#include "iod/daemon.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/quiet_thread.h"
#include "net/wire.h"

namespace shima::iod {
namespace {

using remote::Op;
using remote::ReplyHead;
using remote::Request;
using remote::RequestHead;

constexpr int accept_pause_ms = 20;
// A client that has been silent for so long gets no memory until its next request.
constexpr int idle_ms = 1000;

UniqueFd listening_socket(const addrinfo& at) {
  UniqueFd socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket && at.ai_family == AF_INET6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  if (socket && ::bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0)
    return socket;
  return {};
}

SocketAddress own_end(int socket) {
  SocketAddress address{};
  socklen_t len = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &len);
  return address;
}

std::string other_end(int socket) {
  SocketAddress address{};
  socklen_t len = sizeof address;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &len);
  return remote::Node{name_of(address), std::to_string(ntohs(address.sin6_port))}.name();
}

std::string printable(std::string text) {
  for (char& c : text)
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  return text;
}

// Whether there is something to receive within the time; negative: without limit.
bool hears(int socket, int timeout_ms) {
  pollfd watched{socket, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&watched, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::unexpected<Error> broke_off() {
  return fail(Code::io, "communicating", errno == EAGAIN ? ETIMEDOUT : errno);
}

Status receive(int socket, void* data, std::size_t len_bytes) {
  if (!receive_all(socket, data, len_bytes)) return broke_off();
  return {};
}

// False at the end of the connection.
Result<bool> receive_head(int socket, RequestHead& head) {
  char first = 0;
  const ssize_t len = ::recv(socket, &first, 1, MSG_PEEK);
  if (len == 0 || (len < 0 && errno == ECONNRESET)) return false;
  SHIMA_TRY(receive(socket, &head, sizeof head));
  return true;
}

std::string traffic_text(const Traffic& traffic) {
  return fmt::format("{} bytes read, {} bytes written, {} requests", traffic.read_bytes.load(),
                     traffic.written_bytes.load(), traffic.requests.load());
}

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
  SHIMA_TRY_ASSIGN(Key key, read_key(options.key_file));
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options), std::move(key)));
  SHIMA_TRY(daemon->prepare_targets());
  SHIMA_TRY(daemon->listen());
  daemon->bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!daemon->bell_) return fail_errno(errno, "making an eventfd");
  SHIMA_TRY_ASSIGN(daemon->acceptor_,
                   start_quiet_thread([raw = daemon.get()] { raw->accept_clients(); }));
  return daemon;
}

Status Daemon::prepare_targets() {
  for (const TargetPlace& place : options_.targets) {
    // The first client that creates a file makes a target of the directory.
    const auto opened = Target::open_at(place, Target::Purpose::use);
    const std::string marker = place.directory + "/" + target_marker;
    const bool is_unused = ::access(place.directory.c_str(), W_OK | X_OK) == 0 &&
                           ::access(marker.c_str(), F_OK) != 0 && errno == ENOENT;
    if (!opened && !is_unused) return std::unexpected(opened.error());
    targets_.push_back(std::make_unique<ServedTarget>());
    targets_.back()->place = place;
  }
  return {};
}

Status Daemon::listen() {
  remote::Node& at = options_.listen;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(at.host.empty() ? nullptr : at.host.c_str(), at.port.c_str(), &wanted, &found);
  if (error != 0)
    return fail(Code::bad_argument, fmt::format("{}: {}", at.name(), ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  int why = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd socket = listening_socket(*one);
    if (!socket) why = errno;
    if (socket) listeners_.push_back(std::move(socket));
  }
  if (listeners_.empty()) return fail(Code::io, "listening at " + at.name(), why);
  at.port = std::to_string(ntohs(own_end(listeners_.front().get()).sin6_port));
  return {};
}

Daemon::~Daemon() {
  stopping_ = true;
  if (bell_) ::eventfd_write(bell_.get(), 1);
  if (acceptor_.joinable()) acceptor_.join();
  for (Client& client : clients_) ::shutdown(client.socket.get(), SHUT_RD);
  constexpr int grace_ms = 1000;
  for (int waited = 0; waited < grace_ms; waited += accept_pause_ms) {
    if (std::ranges::all_of(clients_, [](const Client& one) { return one.has_ended.load(); }))
      break;
    ::poll(nullptr, 0, accept_pause_ms);
  }
  for (Client& client : clients_) ::shutdown(client.socket.get(), SHUT_RDWR);
  for (Client& client : clients_) client.thread.join();
}

// --- the clients --------------------------------------------------------------------------------

void Daemon::accept_clients() {
  std::vector<pollfd> watched{{bell_.get(), POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  while (!stopping_) {
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    eventfd_t rings = 0;
    if (watched.front().revents != 0) ::eventfd_read(bell_.get(), &rings);
    join_ended();
    for (const pollfd& one : std::span(watched).subspan(1))
      if ((one.revents & POLLIN) != 0 && !stopping_) admit(one.fd);
  }
}

void Daemon::join_ended() {
  std::list<Client> ended;
  {
    const std::lock_guard hold(mutex_);
    for (auto at = clients_.begin(); at != clients_.end();) {
      const auto next = std::next(at);
      if (at->has_ended) ended.splice(ended.end(), clients_, at);
      at = next;
    }
  }
  for (Client& client : ended) client.thread.join();
}

bool Daemon::has_room() {
  const std::lock_guard hold(mutex_);
  const auto strangers =
      std::ranges::count_if(clients_, [](const Client& one) { return !one.is_trusted; });
  return clients_.size() < options_.most_clients &&
         strangers < static_cast<std::ptrdiff_t>(options_.most_strangers);
}

void Daemon::admit(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    // Without descriptors the listener stays readable.
    if (errno != EAGAIN && errno != ECONNABORTED) ::poll(nullptr, 0, accept_pause_ms);
    return;
  }
  const std::string peer = other_end(socket.get());
  const bool has_place = has_room();
  if (!has_place && !has_refused_)
    log(LogLevel::warn, "refused {}: there are too many connections", peer);
  has_refused_ = !has_place;
  if (!has_place) return;
  const std::lock_guard hold(mutex_);
  Client& client = clients_.emplace_back();
  client.socket = std::move(socket);
  client.peer = peer;
  auto thread = start_quiet_thread([this, &client] { serve(client); });
  if (!thread) {
    log(LogLevel::warn, "refused {}: {}", client.peer, describe(thread.error()));
    clients_.pop_back();
    return;
  }
  client.thread = *std::move(thread);
}

void Daemon::serve(Client& client) {
  const int socket = client.socket.get();
  answer_at_once(socket);
  give_up_after(socket, options_.handshake_timeout);
  const Status proved = prove_to_client(socket, key_, remote::spoken);
  if (proved) {
    client.is_trusted = true;
    probe_when_silent(socket, node_timeout());
    give_up_after(socket, options_.message_timeout);
    const Status end = caught([&] { return converse(client); });
    if (!end) log(LogLevel::warn, "dropped {}: {}", client.peer, describe(end.error()));
  } else if (proved.error().sys_errno != ECONNRESET && !stopping_) {
    log(LogLevel::warn, "refused {}: {}", client.peer, describe(proved.error()));
  }
  ::shutdown(socket, SHUT_RDWR);
  client.has_ended = true;
  ::eventfd_write(bell_.get(), 1);
}

// Returns at the end of the connection.
Status Daemon::converse(Client& client) {
  const int socket = client.socket.get();
  Session session(targets_, client.traffic);
  Buffer data;
  std::vector<std::byte> rest;
  while (true) {
    if (!data.holds_memory() || !hears(socket, idle_ms)) {
      data.release();
      std::ignore = hears(socket, -1);
    }
    RequestHead head;
    SHIMA_TRY_ASSIGN(const bool goes_on, receive_head(socket, head));
    if (!goes_on) return {};
    SHIMA_TRY_ASSIGN(const std::size_t rest_bytes, remote::rest_of(head));
    rest.resize(rest_bytes);
    SHIMA_TRY(receive(socket, rest.data(), rest.size()));
    SHIMA_TRY_ASSIGN(const Request request, remote::decode(head, rest));
    const auto room = data.take(head.data_bytes);
    SHIMA_TRY(receive(socket, room.data(), room.size()));
    SHIMA_TRY(answer(client, session, request, data));
  }
}

Status Daemon::answer(Client& client, Session& session, const Request& request, Buffer& data) {
  Result<std::int64_t> value = 0;
  std::string text;
  if (request.op() == Op::introduce) {
    introduce(client, request);
  } else if (request.op() == Op::status) {
    text = status();
    text.resize(std::min(text.size(), remote::most_data_bytes));
    std::memcpy(data.take(text.size()).data(), text.data(), text.size());
  } else {
    value = session.execute(request, data);
  }
  ReplyHead head{.serial = request.head.serial, .data_bytes = data.bytes().size()};
  std::string error;
  if (value) {
    head.value = *value;
  } else {
    head.code = static_cast<std::uint32_t>(value.error().code);
    head.sys_errno = value.error().sys_errno;
    error = value.error().what.substr(0, remote::most_error_bytes);
    head.error_bytes = static_cast<std::uint32_t>(error.size());
  }
  const bool more = !error.empty() || head.data_bytes > 0;
  if (!send_all(client.socket.get(), &head, sizeof head, more) ||
      !send_all(client.socket.get(), error.data(), error.size(), head.data_bytes > 0) ||
      !send_all(client.socket.get(), data.bytes().data(), data.bytes().size()))
    return broke_off();
  return {};
}

void Daemon::introduce(Client& client, const Request& request) {
  const std::lock_guard hold(mutex_);
  if (!request.words.empty()) client.name = printable(request.words.front());
}

std::string Daemon::status() {
  const auto up = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_);
  const std::lock_guard hold(mutex_);
  std::string text = fmt::format("I/O node {}, process {}, up {} s, {} connections\n",
                                 options_.listen.name(), ::getpid(), up.count(), clients_.size());
  for (const auto& target : targets_)
    text += fmt::format("target {} at {}: {}\n", target->place.name, target->place.directory,
                        traffic_text(target->traffic));
  for (const Client& client : clients_)
    if (client.is_trusted && !client.has_ended)
      text += fmt::format("client {}, {}: {}\n", client.peer, client.name,
                          traffic_text(client.traffic));
  return text;
}

}  // namespace shima::iod
