#include "net/wire.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>

#include "base/process/launcher.h"

namespace shima {
namespace {

using std::chrono::milliseconds;

// Moves all bytes by move(offset); a signal of the program does not end it.
template <class Move>
bool move_all(std::size_t len_bytes, Move move) {
  for (std::size_t done = 0; done < len_bytes;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = ECONNRESET;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

// A connection to the server at this endpoint, or none with errno.
UniqueFd connect_at(const SocketAddress& endpoint, const ServiceAddress& address,
                    milliseconds timeout) {
  UniqueFd socket(::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  give_up_after(socket.get(), timeout);
  answer_at_once(socket.get());
  ServiceAddress::Secret proof{};
  const bool shown =
      connect_all(socket.get(), as_sockaddr(endpoint), length_of(endpoint), timeout) &&
      send_all(socket.get(), address.asker.data(), address.asker.size()) &&
      receive_all(socket.get(), proof.data(), proof.size());
  if (shown && proof == address.keeper) return socket;
  const int why = shown ? ECONNREFUSED : errno;
  socket = {};
  errno = why;
  return {};
}

}  // namespace

// A connect that a signal interrupted continues in the kernel.
bool connect_all(int socket, const sockaddr* address, socklen_t len, milliseconds timeout) {
  if (::connect(socket, address, len) == 0) return true;
  if (errno != EINTR) return false;
  pollfd watched{socket, POLLOUT, 0};
  while (::poll(&watched, 1, static_cast<int>(timeout.count())) < 0 && errno == EINTR) {
  }
  int error = ETIMEDOUT;
  socklen_t error_len = sizeof error;
  if ((watched.revents & POLLOUT) != 0)
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &error_len);
  errno = error;
  return error == 0;
}

bool send_all(int socket, const void* data, std::size_t len_bytes, bool more_follows) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::send(socket, static_cast<const std::byte*>(data) + done, len_bytes - done,
                  MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0));
  });
}

bool receive_all(int socket, void* data, std::size_t len_bytes) {
  return move_all(len_bytes, [&](std::size_t done) {
    return ::recv(socket, static_cast<std::byte*>(data) + done, len_bytes - done, 0);
  });
}

void answer_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void give_up_after(int socket, milliseconds timeout) {
  const timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::chrono::seconds node_timeout() {
  return seconds_setting("SHIMA_NODE_TIMEOUT", std::chrono::seconds(10));
}

void probe_when_silent(int socket, std::chrono::seconds timeout) {
  const int yes = 1;
  const int silent_s = static_cast<int>(std::clamp<std::int64_t>(timeout.count() / 3, 1, 60));
  const int between_probes_s = 1;
  const int probes = std::max(1, static_cast<int>(timeout.count()) - silent_s);
  give_up_after(socket, milliseconds(0));  // never
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &silent_s, sizeof silent_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between_probes_s, sizeof between_probes_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

// With TCP_USER_TIMEOUT, the kernel ignores the number of probes and closes at the first probe
// after that time; also at the first probe of a window that has been closed for so long.
void close_if_unreachable(int socket, std::chrono::seconds timeout) {
  const auto limit_ms = static_cast<unsigned>(milliseconds(timeout).count());
  probe_when_silent(socket, timeout);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

Result<UniqueFd> connect_to(const ServiceAddress& address, milliseconds timeout) {
  int why = ENETUNREACH;
  std::string tried;
  for (const SocketAddress& endpoint : std::span(address.endpoints).first(address.endpoint_count)) {
    UniqueFd socket = connect_at(endpoint, address, timeout);
    if (socket) return socket;
    why = errno;
    tried += (tried.empty() ? "" : " ") + name_of(endpoint);
  }
  return fail(Code::io, tried.empty() ? "nothing, since it has no network address" : tried, why);
}

}  // namespace shima
