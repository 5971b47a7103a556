#include "net/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/process/quiet_thread.h"

namespace shima {
namespace {

constexpr int accept_pause_ms = 20;

// A socket that listens at a free port of the address; empty, with errno, on failure.
UniqueFd listening_socket(const SocketAddress& address) {
  const int family = address.sin6_family;
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket && ::bind(socket.get(), as_sockaddr(address), length_of(address)) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0)
    return socket;
  return {};
}

SocketAddress bound_address(int socket) {
  SocketAddress bound{};
  socklen_t len = sizeof bound;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &len);
  return bound;
}

std::string peer_of(int socket) {
  SocketAddress peer{};
  socklen_t len = sizeof peer;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &len);
  return name_of(peer);
}

}  // namespace

Status Server::listen(std::span<const SocketAddress> addresses) {
  for (const SocketAddress& address : addresses) {
    if (address_.endpoint_count == ServiceAddress::most_endpoints) break;
    UniqueFd socket = listening_socket(address);
    if (!socket) continue;
    address_.endpoints[address_.endpoint_count++] = bound_address(socket.get());
    listeners_.push_back(std::move(socket));
  }
  if (listeners_.empty() && !addresses.empty())
    return fail_errno(errno, fmt::format("listening at {}", name_of(addresses.back())));
  bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) return fail_errno(errno, "creating an eventfd");
  for (ServiceAddress::Secret* secret : {&address_.asker, &address_.keeper})
    if (::getrandom(secret->data(), secret->size(), 0) != static_cast<ssize_t>(secret->size()))
      return fail_errno(errno, "creating a secret");
  return {};
}

Result<std::unique_ptr<Server>> Server::start(std::span<const SocketAddress> addresses,
                                              const ServerLimits& limits, Handlers handlers) {
  std::unique_ptr<Server> server(new Server(limits, std::move(handlers)));
  SHIMA_TRY(server->listen(addresses));
  SHIMA_TRY_ASSIGN(server->thread_, start_quiet_thread([own = server.get()] { own->run(); }));
  return server;
}

Server::~Server() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Server::wake() {
  const std::uint64_t once = 1;
  if (bell_) std::ignore = ::write(bell_.get(), &once, sizeof once);
}

void Server::run() {
  for (;;) {
    const auto more = caught([&] { return serve_round(); });
    if (more ? !*more : stopping_.load()) break;
    if (!more) ::poll(nullptr, 0, accept_pause_ms);  // out of memory: retry later
  }
}

void Server::answer_bell() {
  std::uint64_t rings = 0;
  std::ignore = ::read(bell_.get(), &rings, sizeof rings);
  if (handlers_.woken) handlers_.woken(*this);
}

// Waits for messages and serves them; false when the server ends. If there is no memory for a
// visitor's message, its connection is closed. The last round begins after the server was told to
// stop and serves what has arrived: a connection closed with unread bytes is reset, and the kernel
// of the client then drops what this server has sent last.
Result<bool> Server::serve_round() {
  const bool is_last = stopping_;
  std::vector<pollfd> watched{{bell_.get(), POLLIN, 0}};
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  for (const UniqueFd& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) {
    watched.push_back({visitor.socket.get(), POLLIN, 0});
    next = std::min(next, visitor.until);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  const int timeout_ms = is_last             ? 0
                         : visitors_.empty() ? -1
                                             : static_cast<int>(std::max<long>(left, 0));
  if (::poll(watched.data(), watched.size(), timeout_ms) < 0 && errno != EINTR) return false;
  if (watched[0].revents != 0) answer_bell();
  const pollfd* const of_visitors = watched.data() + 1 + listeners_.size();
  for (std::size_t i = 0; i < visitors_.size(); ++i) {
    if (of_visitors[i].revents == 0) continue;
    const auto stays = caught([&]() -> Result<bool> { return attend(visitors_[i]); });
    if (!stays || !*stays) visitors_[i].until = {};
  }
  if (is_last) return false;
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (watched[i + 1].revents != 0) admit(listeners_[i].get());
  keep_within_limits();
  return !handlers_.over || !handlers_.over(*this);
}

void Server::admit(int listener) {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // Probably out of descriptors: new connections wait until others are closed.
    ::poll(nullptr, 0, accept_pause_ms);
    return;
  }
  answer_at_once(socket.get());
  visitors_.push_back(
      {.socket = std::move(socket), .until = Clock::now() + limits_.handshake_timeout});
}

// Closes connections whose deadline has passed, and of too many those that were silent longest.
void Server::keep_within_limits() {
  for (const bool trusted : {false, true}) {
    const auto most =
        static_cast<std::ptrdiff_t>(trusted ? limits_.most_clients : limits_.most_strangers);
    const auto counts = [&](const Visitor& visitor) {
      return visitor.trusted == trusted && visitor.until != Clock::time_point{};
    };
    const auto later = [&](const Visitor& a, const Visitor& b) {
      return counts(a) != counts(b) ? counts(a) : a.until < b.until;
    };
    while (std::ranges::count_if(visitors_, counts) > most)
      std::ranges::min_element(visitors_, later)->until = {};
  }
  const Clock::time_point now = Clock::now();
  for (Visitor& visitor : visitors_)
    if (visitor.until <= now && visitor.trusted && handlers_.bid_farewell)
      handlers_.bid_farewell(*this, visitor);
  std::erase_if(visitors_, [&](const Visitor& visitor) { return visitor.until <= now; });
}

Clock::time_point Server::idle_deadline() const {
  return limits_.idle_timeout.count() == 0 ? Clock::time_point::max()
                                           : Clock::now() + limits_.idle_timeout;
}

bool Server::trust(Visitor& visitor) {
  if (!std::equal(address_.asker.begin(), address_.asker.end(), visitor.message.begin())) {
    if (!std::exchange(has_refused_, true))
      log(LogLevel::warn,
          "a connection without the secret of this job was refused; it comes from {}",
          peer_of(visitor.socket.get()));
    return false;
  }
  visitor.until = idle_deadline();
  if (!send_all(visitor.socket.get(), address_.keeper.data(), address_.keeper.size())) return false;
  visitor.trusted = true;
  return !handlers_.welcome || handlers_.welcome(*this, visitor);
}

// Reads from a connection; false when it must be closed.
bool Server::attend(Visitor& visitor) {
  const std::size_t wanted =
      visitor.trusted ? handlers_.message_bytes : sizeof(ServiceAddress::Secret);
  const ssize_t got = ::recv(visitor.socket.get(), visitor.message.data() + visitor.received,
                             wanted - visitor.received, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  visitor.received += static_cast<std::size_t>(got);
  if (visitor.received < wanted) return true;
  visitor.received = 0;
  if (!visitor.trusted) return trust(visitor);
  const bool stays = handlers_.serve(*this, visitor);
  visitor.until = idle_deadline();
  return stays;
}

}  // namespace shima
