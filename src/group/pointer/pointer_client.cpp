#include "group/pointer/pointer_client.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/fault_point.h"

namespace shima {
namespace {

constexpr int answer_timeout_s = 5;

void give_up_soon(int socket) {
  const timeval limit{answer_timeout_s, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// A connect that a signal interrupted continues in the kernel.
bool connect_all(int socket, const SocketAddress& address) {
  if (::connect(socket, as_sockaddr(address), length_of(address)) == 0) return true;
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

// False if the server has closed the idle connection; a firewall may drop one unnoticed.
bool is_open(int socket) {
  std::byte nothing{};
  const ssize_t got = ::recv(socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool was_closed(int sys_errno) { return sys_errno == ECONNRESET || sys_errno == EPIPE; }

// A connection to the server at this endpoint, or none with errno.
UniqueFd connect_to(const SocketAddress& endpoint, const PointerAddress& address) {
  UniqueFd socket(::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  give_up_soon(socket.get());
  answer_at_once(socket.get());
  PointerAddress::Secret proof{};
  const bool shown = connect_all(socket.get(), endpoint) &&
                     send_all(socket.get(), address.asker.data(), address.asker.size()) &&
                     receive_all(socket.get(), proof.data(), proof.size());
  if (shown && proof == address.keeper) return socket;
  const int why = shown ? ECONNREFUSED : errno;
  socket = {};
  errno = why;
  return {};
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  return number == 0 ? 1 : number;
}

}  // namespace

PointerClient::PointerClient(const PointerAddress& address)
    : address_(address), client_(random_number()) {}

Status PointerClient::connect() {
  int why = ENETUNREACH;
  std::string tried;
  for (const SocketAddress& endpoint :
       std::span(address_.endpoints).first(address_.endpoint_count)) {
    socket_ = connect_to(endpoint, address_);
    if (socket_) return {};
    why = errno;
    tried += " " + name_of(endpoint);
  }
  return fail(Code::io,
              "the shared file pointer: rank 0 stores it and must be reachable over TCP; tried" +
                  (tried.empty() ? " nothing, since it has no network address" : tried),
              why);
}

Result<std::int64_t> PointerClient::ask(PointerRequest request) {
  constexpr int most_attempts = 8;
  constexpr unsigned pause_us = 1000;
  const std::lock_guard hold(lock_);
  request.client = client_;
  request.serial = ++serial_;
  for (int attempt = 1;; ++attempt) {
    if (socket_ && !is_open(socket_.get())) socket_ = {};
    const Status connected = socket_ ? Status{} : connect();
    if (!connected && !was_closed(connected.error().sys_errno))
      return std::unexpected(connected.error());
    int why = connected ? 0 : connected.error().sys_errno;
    if (connected) {
      fault_point(FaultPhase::pointer_ask);
      std::int64_t answer = 0;
      if (send_all(socket_.get(), &request, sizeof request) &&
          receive_all(socket_.get(), &answer, sizeof answer))
        return answer;
      why = errno;
      socket_ = {};
    }
    if (!was_closed(why) || attempt == most_attempts)
      return fail(Code::peer_lost,
                  "the shared file pointer: rank 0, which stores it, does not answer", why);
    ::usleep(pause_us << attempt);  // many clients connect at once
  }
}

}  // namespace shima
