#include "group/pointer/pointer_client.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/fault_point.h"

namespace shima {
namespace {

constexpr std::chrono::seconds handshake_timeout{5};

// False if the server has closed the idle connection; a firewall may drop one unnoticed.
bool is_open(int socket) {
  std::byte nothing{};
  const ssize_t got = ::recv(socket, &nothing, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool was_closed(int sys_errno) { return sys_errno == ECONNRESET || sys_errno == EPIPE; }

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  return number == 0 ? 1 : number;
}

}  // namespace

PointerClient::PointerClient(const ServiceAddress& address)
    : address_(address), client_(random_number()) {}

Status PointerClient::connect() {
  auto connected = connect_to(address_, handshake_timeout);
  if (!connected) {
    const Error& error = connected.error();
    // Rank 0 did listen: a refusal means that its process has ended.
    const bool is_lost = was_reached_ || error.sys_errno == ECONNREFUSED;
    return fail(is_lost ? Code::peer_lost : error.code,
                "the shared file pointer: rank 0 stores it and must be reachable over TCP; tried " +
                    error.what,
                error.sys_errno);
  }
  socket_ = *std::move(connected);
  close_if_unreachable(socket_.get(), node_timeout());  // rank 0 may be slow or stopped
  was_reached_ = true;
  return {};
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
