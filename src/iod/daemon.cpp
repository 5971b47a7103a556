#include "iod/daemon.h"

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/process/quiet_thread.h"
#include "iod/path/beneath.h"
#include "net/wire.h"
#include "observe/board.h"

namespace shima::iod {
namespace {

constexpr int accept_pause_ms = 20;
constexpr int crowded_pause_ms = 100;

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

// A client on the board.
struct ShownClient {
  ShownClient() { ++board::shown().clients; }
  ShownClient(const ShownClient&) = delete;
  ShownClient& operator=(const ShownClient&) = delete;
  ~ShownClient() { --board::shown().clients; }
};

}  // namespace

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::move(options)));
  show_board({.kind = BoardKind::node});
  SHIMA_TRY_ASSIGN(daemon->keys_, KeyRing::read(daemon->key_source(), KeyRing()));
  SHIMA_TRY(daemon->check_targets());
  daemon->calls_ = {
      [raw = daemon.get()](Client& client, const std::string& process) {
        const std::lock_guard hold(raw->mutex_);
        client.process = process;
      },
      [raw = daemon.get()](const Client& client) {
        return raw->status(client.holder->user.empty() ? nullptr : client.holder.get());
      }};
  SHIMA_TRY(daemon->listen());
  daemon->bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!daemon->bell_) return fail_errno(errno, "making an eventfd");
  SHIMA_TRY_ASSIGN(daemon->acceptor_,
                   start_quiet_thread([raw = daemon.get()] { raw->accept_clients(); }));
  return daemon;
}

KeyRing::Source Daemon::key_source() const {
  return {options_.key_file, options_.keys_file, options_.targets, options_.directories,
          options_.memory_of_key_bytes};
}

Status Daemon::check_targets() const {
  for (const auto& target : keys_.targets()) {
    const TargetPlace& place = target->place;
    if (target->is_directory) {
      SHIMA_TRY(Beneath::open(place.directory));
      continue;
    }
    // The first client that creates a file makes a target of the directory.
    const auto opened = Target::open_at(place, Target::Purpose::use);
    const std::string marker = place.directory + "/" + target_marker;
    const bool is_unused = ::access(place.directory.c_str(), W_OK | X_OK) == 0 &&
                           ::access(marker.c_str(), F_OK) != 0 && errno == ENOENT;
    if (!opened && !is_unused) return std::unexpected(opened.error());
  }
  return {};
}

Status Daemon::read_keys() {
  const std::lock_guard hold(mutex_);
  SHIMA_TRY_ASSIGN(keys_, KeyRing::read(key_source(), keys_));
  for (Client& client : clients_)
    if (client.is_trusted &&
        std::ranges::find(keys_.holders(), client.holder) == keys_.holders().end())
      ::shutdown(client.socket.get(), SHUT_RDWR);
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
  collective_.stop();
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

// While there are too many strangers, others wait in the backlog of the listening sockets.
void Daemon::accept_clients() {
  std::vector<pollfd> watched{{bell_.get(), POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  while (!stopping_) {
    const bool is_crowded = count_strangers() >= options_.most_strangers;
    for (pollfd& one : watched) one.revents = 0;
    const int ready =
        ::poll(watched.data(), is_crowded ? 1 : watched.size(), is_crowded ? crowded_pause_ms : -1);
    if (ready < 0 && errno != EINTR) return;
    eventfd_t rings = 0;
    if (watched.front().revents != 0) ::eventfd_read(bell_.get(), &rings);
    join_ended();
    if (is_crowded) drop_strangers();
    for (const pollfd& one : std::span(watched).subspan(1))
      if ((one.revents & POLLIN) != 0 && !stopping_) admit(one.fd);
  }
}

std::size_t Daemon::count_strangers() {
  const std::lock_guard hold(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(
      clients_, [](const Client& one) { return !one.is_trusted && !one.has_ended; }));
}

// Those that have been silent while others wait.
void Daemon::drop_strangers() {
  const std::lock_guard hold(mutex_);
  for (Client& client : clients_)
    if (!client.is_trusted && Clock::now() - client.since > options_.crowded_timeout)
      ::shutdown(client.socket.get(), SHUT_RDWR);
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

void Daemon::admit(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    // Without descriptors the listener stays readable.
    if (errno != EAGAIN && errno != ECONNABORTED) ::poll(nullptr, 0, accept_pause_ms);
    return;
  }
  const std::string peer = other_end(socket.get());
  const std::lock_guard hold(mutex_);
  const bool has_place = clients_.size() < options_.most_clients;
  if (!has_place && !has_refused_)
    log(LogLevel::warn, "refused {}: there are {} connections, the most that are served", peer,
        clients_.size());
  has_refused_ = !has_place;
  if (!has_place) return;
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
  const Status welcomed = caught([&] { return welcome(client); });
  // A new client wakes the thread that accepts others, if it waits for that.
  ::eventfd_write(bell_.get(), 1);
  if (welcomed) {
    const Status end = caught([&] { return converse(client); });
    if (!end) log(LogLevel::warn, "dropped {}: {}", client.peer, describe(end.error()));
    --client.holder->connections;
  } else if (welcomed.error().sys_errno != ECONNRESET && !stopping_) {
    log(LogLevel::warn, "refused {}: {}", client.peer, describe(welcomed.error()));
  }
  ::shutdown(socket, SHUT_RDWR);
  client.has_ended = true;
  ::eventfd_write(bell_.get(), 1);
}

// The key is proved, and this thread becomes its user.
Status Daemon::welcome(Client& client) {
  std::vector<Key> keys;
  std::vector<std::shared_ptr<KeyHolder>> holders;
  {
    const std::lock_guard hold(mutex_);
    keys.assign(keys_.keys().begin(), keys_.keys().end());
    holders.assign(keys_.holders().begin(), keys_.holders().end());
  }
  SHIMA_TRY_ASSIGN(const std::size_t which,
                   prove_to_client(client.socket.get(), keys, remote::spoken));
  KeyHolder& holder = *holders[which];
  if (holder.identity) SHIMA_TRY(take_identity(*holder.identity));
  if (++holder.connections > options_.most_clients_of_key) {
    --holder.connections;
    return fail(Code::quota, fmt::format("its key has {} connections, the most for one key",
                                         options_.most_clients_of_key));
  }
  const std::lock_guard hold(mutex_);
  client.holder = holders[which];
  client.process = client.peer;
  client.is_trusted = true;
  return {};
}

Status Daemon::converse(Client& client) {
  const ShownClient shown;
  const int socket = client.socket.get();
  probe_when_silent(socket, node_timeout());
  give_up_after(socket, options_.message_timeout);
  Conversation conversation(client, {queue_, collective_, {mergers_, lock_holders_}, calls_},
                            options_.message_timeout);
  return conversation.hold();
}

}  // namespace shima::iod
