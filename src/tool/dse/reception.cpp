#include "tool/dse/reception.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "base/log.h"
#include "base/process/quiet_thread.h"
#include "dse/introduction.h"
#include "dse/link.h"

namespace shima::tool {
namespace {

constexpr std::size_t most_strangers = 128;
constexpr auto handshake_timeout = std::chrono::seconds(5);

}  // namespace

Result<std::unique_ptr<Reception>> Reception::listen(const std::vector<SocketAddress>& addresses) {
  std::unique_ptr<Reception> made(new Reception);
  ServiceAddress& place = made->place_;
  for (const SocketAddress& address : addresses) {
    if (place.endpoint_count == ServiceAddress::most_endpoints) break;
    UniqueFd socket(::socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    SocketAddress bound{};
    socklen_t len = sizeof bound;
    if (!socket || ::bind(socket.get(), as_sockaddr(address), length_of(address)) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0 ||
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &len) != 0)
      continue;
    place.endpoints[place.endpoint_count++] = bound;
    made->listeners_.push_back(std::move(socket));
  }
  if (made->listeners_.empty()) return fail_errno(errno, "listening for the daemons");
  SHIMA_TRY(dse::make_key(place));
  made->bell_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  made->stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->bell_ || !made->stop_) return fail_errno(errno, "making an eventfd");
  return made;
}

Status Reception::open() {
  SHIMA_TRY_ASSIGN(thread_, start_quiet_thread([this] { admit_all(); }));
  return {};
}

Reception::~Reception() {
  if (stop_) ::eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) thread_.join();
  {
    const std::lock_guard hold(mutex_);
    for (Stranger& stranger : strangers_)
      if (stranger.socket) ::shutdown(stranger.socket.get(), SHUT_RDWR);
  }
  for (Stranger& stranger : strangers_) stranger.thread.join();
}

std::vector<UniqueFd> Reception::take() {
  eventfd_t rings = 0;
  ::eventfd_read(bell_.get(), &rings);
  const std::lock_guard hold(mutex_);
  return std::exchange(proven_, {});
}

void Reception::admit_all() {
  std::vector<pollfd> watched{{stop_.get(), POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  while (::poll(watched.data(), watched.size(), -1) >= 0 || errno == EINTR) {
    if (watched.front().revents != 0) return;
    for (auto at = strangers_.begin(); at != strangers_.end();) {
      const auto one = at++;
      if (!one->has_ended) continue;
      one->thread.join();
      strangers_.erase(one);
    }
    for (const pollfd& one : std::span(watched).subspan(1))
      if (one.revents != 0) admit(one.fd);
  }
}

void Reception::admit(int listener) {
  constexpr int pause_ms = 20;
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket || strangers_.size() >= most_strangers) {
    ::poll(nullptr, 0, pause_ms);  // no descriptors, or no room: others end first
    return;
  }
  Stranger& stranger = strangers_.emplace_back();
  stranger.socket = std::move(socket);
  auto thread = start_quiet_thread([this, &stranger] { examine(stranger); });
  if (thread)
    stranger.thread = *std::move(thread);
  else
    strangers_.pop_back();
}

void Reception::examine(Stranger& stranger) {
  const int socket = stranger.socket.get();
  SocketAddress peer{};
  socklen_t len = sizeof peer;
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &len);
  give_up_after(socket, handshake_timeout);
  const Key key = dse::key_of(place_);
  const auto proved = prove_to_client(socket, std::span(&key, 1), dse::spoken);
  if (proved) {
    const std::lock_guard hold(mutex_);
    proven_.push_back(std::move(stranger.socket));
    ::eventfd_write(bell_.get(), 1);
  } else if (proved.error().sys_errno != ECONNRESET) {
    log(LogLevel::warn, "dse: refused a connection from {}: {}", name_of(peer),
        describe(proved.error()));
  }
  if (!proved) ::shutdown(socket, SHUT_RDWR);
  stranger.has_ended = true;
}

}  // namespace shima::tool
