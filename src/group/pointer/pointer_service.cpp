#include "group/pointer/pointer_service.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fault_point.h"
#include "base/quiet_thread.h"

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

}  // namespace

// A connection; a client only after it has sent the secret.
struct PointerService::Visitor {
  UniqueFd socket;
  Clock::time_point until;  // deadline: closed then
  bool trusted = false;
  std::size_t received = 0;
  std::array<std::byte, sizeof(PointerRequest)> message{};

  [[nodiscard]] std::size_t wanted() const {
    return trusted ? sizeof(PointerRequest) : sizeof(PointerAddress::Secret);
  }
};

Status PointerService::listen(std::span<const SocketAddress> addresses) {
  for (const SocketAddress& address : addresses) {
    if (address_.endpoint_count == PointerAddress::most_endpoints) break;
    UniqueFd socket = listening_socket(address);
    if (!socket) continue;
    address_.endpoints[address_.endpoint_count++] = bound_address(socket.get());
    listeners_.push_back(std::move(socket));
  }
  if (listeners_.empty() && !addresses.empty())
    return fail_errno(
        errno, fmt::format("listening for shared file pointers at {}", name_of(addresses.back())));
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) return fail_errno(errno, "listening for shared file pointers (eventfd)");
  for (PointerAddress::Secret* secret : {&address_.asker, &address_.keeper})
    if (::getrandom(secret->data(), secret->size(), 0) != static_cast<ssize_t>(secret->size()))
      return fail_errno(errno, "creating the secret of the shared file pointers");
  return {};
}

Result<std::shared_ptr<PointerService>> PointerService::start(
    std::span<const SocketAddress> addresses, const PointerLimits& limits) {
  std::shared_ptr<PointerService> service(new PointerService(limits));
  SHIMA_TRY(service->listen(addresses));
  SHIMA_TRY_ASSIGN(service->thread_, start_quiet_thread([own = service.get()] { own->run(); }));
  return service;
}

PointerService::~PointerService() {
  const std::uint64_t now = 1;
  if (thread_.joinable() && ::write(stop_.get(), &now, sizeof now) == sizeof now) thread_.join();
}

std::int64_t PointerService::serve(const PointerRequest& request) {
  const std::lock_guard hold(lock_);
  LastAnswer* const last = request.client == 0 ? nullptr : &answered_[request.client];
  if (last != nullptr && last->serial == request.serial) return last->answer;
  std::int64_t& word = words_[request.file][request.turn % 2];
  const std::int64_t before = word;
  word = request.operation == PointerRequest::set ? request.value : before + request.value;
  if (last != nullptr) *last = {request.serial, before};
  return before;
}

void PointerService::forget(std::uint64_t file) {
  const std::lock_guard hold(lock_);
  words_.erase(file);
}

void PointerService::run() {
  std::vector<Visitor> visitors;
  while (true) {
    const auto goes_on = caught([&] { return serve_round(visitors); });
    if (!goes_on) ::poll(nullptr, 0, accept_pause_ms);  // out of memory: retry later
    if (goes_on && !*goes_on) break;
  }
}

// Waits for requests and answers them; false when the service ends. If there is no memory for a
// visitor's request, its connection is closed; it connects again.
Result<bool> PointerService::serve_round(std::vector<Visitor>& visitors) {
  std::vector<pollfd> watched{{stop_.get(), POLLIN, 0}};
  Clock::time_point next = Clock::now() + std::chrono::hours(1);
  for (const UniqueFd& listener : listeners_) watched.push_back({listener.get(), POLLIN, 0});
  for (const Visitor& visitor : visitors) {
    watched.push_back({visitor.socket.get(), POLLIN, 0});
    next = std::min(next, visitor.until);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  const int timeout_ms = visitors.empty() ? -1 : static_cast<int>(std::max<long>(left, 0));
  if (::poll(watched.data(), watched.size(), timeout_ms) < 0 && errno != EINTR) return false;
  if (watched[0].revents != 0) return false;
  const pollfd* const of_visitors = watched.data() + 1 + listeners_.size();
  for (std::size_t i = 0; i < visitors.size(); ++i) {
    if (of_visitors[i].revents == 0) continue;
    const auto stays = caught([&]() -> Result<bool> { return attend(visitors[i]); });
    if (!stays || !*stays) visitors[i].socket = {};
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i)
    if (watched[i + 1].revents != 0) admit(listeners_[i].get(), visitors);
  keep_within_limits(visitors);
  return true;
}

void PointerService::admit(int listener, std::vector<Visitor>& visitors) const {
  UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // Probably out of descriptors: new connections wait until others are closed.
    ::poll(nullptr, 0, accept_pause_ms);
    return;
  }
  answer_at_once(socket.get());
  visitors.push_back(
      {.socket = std::move(socket), .until = Clock::now() + limits_.handshake_timeout});
}

// Closes connections whose deadline has passed, and of too many those that were silent longest.
void PointerService::keep_within_limits(std::vector<Visitor>& visitors) const {
  const Clock::time_point now = Clock::now();
  std::erase_if(visitors, [&](const Visitor& v) { return !v.socket || v.until <= now; });
  for (const bool trusted : {false, true}) {
    const auto most =
        static_cast<std::ptrdiff_t>(trusted ? limits_.most_clients : limits_.most_strangers);
    const auto same = [&](const Visitor& visitor) { return visitor.trusted == trusted; };
    const auto later = [&](const Visitor& a, const Visitor& b) {
      return same(a) != same(b) ? same(a) : a.until < b.until;
    };
    while (std::ranges::count_if(visitors, same) > most)
      visitors.erase(std::ranges::min_element(visitors, later));
  }
}

// Reads from a connection; false when it must be closed.
bool PointerService::attend(Visitor& visitor) {
  const ssize_t got = ::recv(visitor.socket.get(), visitor.message.data() + visitor.received,
                             visitor.wanted() - visitor.received, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  visitor.received += static_cast<std::size_t>(got);
  if (visitor.received < visitor.wanted()) return true;
  visitor.received = 0;
  if (!visitor.trusted) {
    visitor.trusted =
        std::equal(address_.asker.begin(), address_.asker.end(), visitor.message.begin());
    visitor.until = Clock::now() + limits_.idle_timeout;
    return visitor.trusted &&
           send_all(visitor.socket.get(), address_.keeper.data(), address_.keeper.size());
  }
  PointerRequest request;
  std::memcpy(&request, visitor.message.data(), sizeof request);
  const std::int64_t answer = serve(request);
  fault_point(FaultPhase::pointer_serve);
  visitor.until = Clock::now() + limits_.idle_timeout;
  return send_all(visitor.socket.get(), &answer, sizeof answer);
}

}  // namespace shima
