#include "dsm/socket/endpoints.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/clock.h"

namespace shima::dsm {
namespace {

// An open socket with its port stored into `address`, or none with errno.
UniqueFd open_at(SocketAddress& address) {
  UniqueFd socket(::socket(address.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return {};
  address.sin6_port = 0;
  socklen_t len = sizeof address;
  if (::bind(socket.get(), as_sockaddr(address), length_of(address)) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &len) != 0)
    return {};
  return socket;
}

// Calls of a spinning wait between two looks at the clock. It gives the core away after each one:
// the kernel may have put the peer on the same core.
constexpr unsigned calls_between_looks = 64;

}  // namespace

Result<std::vector<UniqueFd>> open_endpoints(std::span<const SocketAddress> addresses,
                                             ServiceAddress& address) {
  std::vector<UniqueFd> opened;
  for (const SocketAddress& wanted : addresses) {
    if (opened.size() == ServiceAddress::most_endpoints) break;
    SocketAddress& endpoint = address.endpoints[opened.size()];
    endpoint = wanted;
    if (UniqueFd socket = open_at(endpoint)) opened.push_back(std::move(socket));
  }
  if (opened.empty())
    return fail_errno(
        errno, fmt::format("opening a UDP socket at {} network addresses", addresses.size()));
  address.endpoint_count = static_cast<std::uint32_t>(opened.size());
  for (auto* const secret : {&address.asker, &address.keeper})
    if (::getrandom(secret->data(), secret->size(), 0) != static_cast<ssize_t>(secret->size()))
      return fail_errno(errno, "creating a secret");
  return opened;
}

bool wait_readable(int socket, bool spins, int timeout_ms) {
  pollfd watched{socket, POLLIN, 0};
  constexpr auto patience = std::chrono::milliseconds(1);
  if (spins) {
    const auto until = Clock::now() + patience;
    for (unsigned i = 1; i % calls_between_looks != 0 || Clock::now() < until; ++i) {
      if (::poll(&watched, 1, 0) > 0) return true;
      sched_yield();
    }
  }
  int ready = 0;
  while ((ready = ::poll(&watched, 1, timeout_ms)) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

bool receive_exactly(int socket, void* data, std::size_t len_bytes, bool spins) {
  auto* const begin = static_cast<std::byte*>(data);
  std::size_t done = 0;
  unsigned vain = 0;
  Clock::time_point until;
  while (spins && done < len_bytes) {
    const ssize_t moved = ::recv(socket, begin + done, len_bytes - done, MSG_DONTWAIT);
    if (moved == 0) errno = ECONNRESET;
    if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
      vain = 0;
      continue;
    }
    if (vain++ == 0) until = Clock::now() + std::chrono::milliseconds(1);
    sched_yield();
    if (vain % calls_between_looks == 0 && Clock::now() > until) break;
  }
  return done == len_bytes || receive_all(socket, begin + done, len_bytes - done);
}

bool send_both(int socket, iovec head, iovec data) {
  std::array<iovec, 2> pieces{head, data};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = data.iov_len == 0 ? 1 : 2;
  ssize_t sent = 0;
  while ((sent = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  if (sent < 0) return false;
  auto done = static_cast<std::size_t>(sent);
  if (done < head.iov_len) {
    if (!send_all(socket, static_cast<std::byte*>(head.iov_base) + done, head.iov_len - done))
      return false;
    done = head.iov_len;
  }
  done -= head.iov_len;
  return done == data.iov_len ||
         send_all(socket, static_cast<std::byte*>(data.iov_base) + done, data.iov_len - done);
}

}  // namespace shima::dsm
