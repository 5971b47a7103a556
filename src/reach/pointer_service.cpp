#include "reach/pointer_service.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>

#include "base/fault_point.h"
#include "base/quiet_thread.h"

namespace shima {
namespace {

constexpr int answer_timeout_s = 5;
constexpr int accept_pause_ms = 20;

void give_up_soon(int socket) {
  const timeval limit{answer_timeout_s, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

void answer_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Moves all bytes by move(offset); a signal of the program's does not end it.
template <class Move>
bool move_all(std::size_t len_bytes, Move move) {
  for (std::size_t done = 0; done < len_bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = ECONNRESET;  // the other end has closed
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

bool send_all(int socket, const void* data, std::size_t len_bytes) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::send(socket, static_cast<const std::byte*>(data) + done, len_bytes - done,
                  MSG_NOSIGNAL);
  });
}

bool receive_all(int socket, void* data, std::size_t len_bytes) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::recv(socket, static_cast<std::byte*>(data) + done, len_bytes - done, 0);
  });
}

// A connection that a signal interrupted goes on by itself.
bool connect_all(int socket, const sockaddr* address, socklen_t len) {
  if (::connect(socket, address, len) == 0) return true;
  if (errno != EINTR) return false;
  pollfd watched{socket, POLLOUT, 0};
  while (::poll(&watched, 1, 1000 * answer_timeout_s) < 0 && errno == EINTR) {
  }
  int error = ETIMEDOUT;
  socklen_t error_len = sizeof error;
  if ((watched.revents & POLLOUT) != 0)
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_len);
  errno = error;
  return error == 0;
}

// A firewall may have dropped a connection that was idle.
bool is_open(int socket) {
  std::byte nothing{};
  const ssize_t got = ::recv(socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

const sockaddr* as_sockaddr(const sockaddr_in6& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

socklen_t length_of(const sockaddr_in6& address) {
  return address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string name_of(const sockaddr_in6& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
  const void* bytes = address.sin6_family == AF_INET ? static_cast<const void*>(&v4->sin_addr)
                                                     : static_cast<const void*>(&address.sin6_addr);
  ::inet_ntop(address.sin6_family, bytes, text, sizeof text);
  return text;
}

// The port has the same place in both kinds of address.
void set_port(sockaddr_in6& address, in_port_t port) { address.sin6_port = port; }

// Addresses that mean something on other nodes too.
bool is_reachable_from_outside(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0 ||
      (entry.ifa_flags & IFF_LOOPBACK) != 0)
    return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  if (entry.ifa_addr->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

void find_endpoints(PointerAddress& address, in_port_t port, int family) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (!is_reachable_from_outside(*entry) ||
        address.endpoint_count == PointerAddress::most_endpoints)
      continue;
    if (family == AF_INET && entry->ifa_addr->sa_family == AF_INET6) continue;
    sockaddr_in6& endpoint = address.endpoints[address.endpoint_count++];
    const bool v4 = entry->ifa_addr->sa_family == AF_INET;
    std::memcpy(&endpoint, entry->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    set_port(endpoint, port);
  }
  ::freeifaddrs(all);
}

// A socket that listens at a free port of every address, both kinds if the machine knows both.
int listening_socket(int family) {
  const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  sockaddr_in6 any{};
  any.sin6_family = static_cast<sa_family_t>(family);
  const int no = 0;
  if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(socket, as_sockaddr(any), length_of(any)) == 0 && ::listen(socket, SOMAXCONN) == 0)
    return socket;
  ::close(socket);
  return -1;
}

in_port_t port_of(int socket) {
  sockaddr_in6 bound{};
  socklen_t len = sizeof bound;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &len);
  return bound.sin6_port;
}

// A connection to the keeper at this endpoint, or -1 with errno.
int connect_to(const sockaddr_in6& endpoint, const PointerAddress& address) {
  const int socket = ::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  give_up_soon(socket);
  answer_at_once(socket);
  PointerAddress::Secret shown{};
  if (connect_all(socket, as_sockaddr(endpoint), length_of(endpoint)) &&
      send_all(socket, address.asker.data(), address.asker.size()) &&
      receive_all(socket, shown.data(), shown.size()) && shown == address.keeper)
    return socket;
  const int why = errno;
  ::close(socket);
  errno = why;
  return -1;
}

}  // namespace

// Somebody who connected; an asker only once it has shown the secret.
struct PointerService::Visitor {
  int socket;
  bool trusted = false;
  std::size_t received = 0;
  std::array<std::byte, sizeof(PointerRequest)> message{};

  [[nodiscard]] std::size_t wanted() const {
    return trusted ? sizeof(PointerRequest) : sizeof(PointerAddress::Secret);
  }
};

Status PointerService::listen() {
  int family = AF_INET6;
  listener_ = listening_socket(family);
  if (listener_ < 0) listener_ = listening_socket(family = AF_INET);
  if (listener_ < 0) return fail_errno(errno, "listening for shared file pointers");
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return fail_errno(errno, "listening for shared file pointers (eventfd)");
  for (PointerAddress::Secret* secret : {&address_.asker, &address_.keeper})
    if (::getrandom(secret->data(), secret->size(), 0) != static_cast<ssize_t>(secret->size()))
      return fail_errno(errno, "making a secret for shared file pointers");
  find_endpoints(address_, port_of(listener_), family);
  return {};
}

Result<std::shared_ptr<PointerService>> PointerService::start() {
  std::shared_ptr<PointerService> service(new PointerService);
  SHIMA_TRY(service->listen());
  SHIMA_TRY_ASSIGN(service->thread_, start_quiet_thread([own = service.get()] { own->run(); }));
  return service;
}

PointerService::~PointerService() {
  const std::uint64_t now = 1;
  if (thread_.joinable() && ::write(stop_, &now, sizeof now) == sizeof now) thread_.join();
  for (const int fd : {listener_, stop_})
    if (fd >= 0) ::close(fd);
}

std::int64_t PointerService::serve(const PointerRequest& request) {
  const std::lock_guard hold(lock_);
  std::int64_t& word = words_[request.file][request.turn % 2];
  const std::int64_t before = word;
  word = request.operation == PointerRequest::set ? request.value : before + request.value;
  return before;
}

void PointerService::forget(std::uint64_t file) {
  const std::lock_guard hold(lock_);
  words_.erase(file);
}

void PointerService::run() {
  std::vector<Visitor> visitors;
  while (true) {
    const auto goes_on = caught([&] { return look_round(visitors); });
    if (!goes_on) ::poll(nullptr, 0, accept_pause_ms);  // out of memory: once more, later
    if (goes_on && !*goes_on) break;
  }
  for (const Visitor& visitor : visitors) ::close(visitor.socket);
}

// Waits until somebody wants something, and sees to it; false when the service ends. What needs
// memory comes first.
Result<bool> PointerService::look_round(std::vector<Visitor>& visitors) {
  std::vector<Visitor> staying;
  staying.reserve(visitors.size() + 1);
  std::vector<pollfd> watched{{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
  for (const Visitor& visitor : visitors) watched.push_back({visitor.socket, POLLIN, 0});
  if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return false;
  if (watched[0].revents != 0) return false;
  for (std::size_t i = 0; i < visitors.size(); ++i) {
    const auto stays = caught(
        [&]() -> Result<bool> { return watched[i + 2].revents == 0 || attend(visitors[i]); });
    if (stays && *stays) {
      staying.push_back(visitors[i]);
    } else {
      ::close(visitors[i].socket);
    }
  }
  visitors.swap(staying);
  if (watched[1].revents != 0) {
    if (visitors.size() == visitors.capacity()) visitors.reserve(visitors.size() + 1);
    admit(visitors);
  }
  return true;
}

void PointerService::admit(std::vector<Visitor>& visitors) const {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    // Out of descriptors, most likely: whoever wants in waits until somebody leaves.
    ::poll(nullptr, 0, accept_pause_ms);
    return;
  }
  answer_at_once(socket);
  visitors.push_back({.socket = socket});
}

// Takes what a visitor sent; false when it has to go.
bool PointerService::attend(Visitor& visitor) {
  const ssize_t got = ::recv(visitor.socket, visitor.message.data() + visitor.received,
                             visitor.wanted() - visitor.received, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  visitor.received += static_cast<std::size_t>(got);
  if (visitor.received < visitor.wanted()) return true;
  visitor.received = 0;
  if (!visitor.trusted) {
    visitor.trusted =
        std::equal(address_.asker.begin(), address_.asker.end(), visitor.message.begin());
    return visitor.trusted &&
           send_all(visitor.socket, address_.keeper.data(), address_.keeper.size());
  }
  PointerRequest request;
  std::memcpy(&request, visitor.message.data(), sizeof request);
  const std::int64_t answer = serve(request);
  fault_point(FaultPhase::pointer_serve);
  return send_all(visitor.socket, &answer, sizeof answer);
}

PointerClient::~PointerClient() {
  if (socket_ >= 0) ::close(socket_);
}

Status PointerClient::connect() {
  int why = ENETUNREACH;
  std::string tried;
  for (const sockaddr_in6& endpoint :
       std::span(address_.endpoints).first(address_.endpoint_count)) {
    socket_ = connect_to(endpoint, address_);
    if (socket_ >= 0) return {};
    why = errno;
    tried += " " + name_of(endpoint);
  }
  return fail(Code::io,
              "the shared file pointer: rank 0 keeps it and must be reachable over TCP; tried" +
                  (tried.empty() ? " nothing, since it has no network address" : tried),
              why);
}

Result<std::int64_t> PointerClient::ask(const PointerRequest& request) {
  const std::lock_guard hold(lock_);
  if (socket_ >= 0 && !is_open(socket_)) {
    ::close(socket_);
    socket_ = -1;
  }
  if (socket_ < 0) SHIMA_TRY(connect());
  fault_point(FaultPhase::pointer_ask);
  std::int64_t answer = 0;
  if (send_all(socket_, &request, sizeof request) && receive_all(socket_, &answer, sizeof answer))
    return answer;
  const int why = errno;
  ::close(socket_);
  socket_ = -1;
  return fail(Code::peer_lost, "the shared file pointer: rank 0, which keeps it, does not answer",
              why);
}

}  // namespace shima
