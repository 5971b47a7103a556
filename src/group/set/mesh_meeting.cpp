#include "group/set/mesh_meeting.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <thread>
#include <utility>

#include "net/wire.h"

namespace shima {
namespace {

using std::chrono::milliseconds;

constexpr Spoken spoken{{'s', 'h', 'i', 'm', 'a', 's', 'e', 't'},
                        std::endian::native == std::endian::little ? 1U : 0x01000000U};
// The time that a node's own meeting may take longer than that of others.
constexpr milliseconds grace{2000};
constexpr milliseconds between_attempts{20};

struct Addresses {
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> all;
};

Result<Addresses> addresses_of(const char* host, const std::string& port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host, port.c_str(), &wanted, &found);
  if (error != 0)
    return fail(Code::bad_argument,
                fmt::format("meeting the processes of a set: the address {}:{}: {}",
                            host == nullptr ? "" : host, port, ::gai_strerror(error)));
  return Addresses{{found, ::freeaddrinfo}};
}

// Whether a node has found out that a member will not come: then no member waits for it.
bool may_be_missing(std::uint32_t code) {
  const auto known = static_cast<Code>(code);
  return known == Code::peer_lost || known == Code::timed_out || known == Code::access_denied;
}

UniqueFd listening_socket(const addrinfo& at) {
  UniqueFd socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket && ::bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0)
    return socket;
  return {};
}

std::uint64_t digest_of(const NodesCall& call) {
  std::uint64_t digest = 0xcbf29ce484222325U + call.number;
  const auto mix = [&](std::uint64_t word) { digest = (digest ^ word) * 0x100000001b3U; };
  for (const SetPlace& place : call.places) {
    for (const char c : place.host) mix(static_cast<unsigned char>(c));
    mix(static_cast<std::uint64_t>(place.pid));
  }
  return digest;
}

}  // namespace

MeshMeeting::MeshMeeting(const NodesCall& call, int own)
    : call_(call), own_(own), digest_(digest_of(call)), sockets_(call.places.size()) {
  if (call.timeout) until_ = Clock::now() + *call.timeout + grace;
}

std::unexpected<Error> MeshMeeting::failure(Code code, int member) const {
  const SetPlace& place = call_.places[static_cast<std::size_t>(member)];
  const char* why = code == Code::timed_out   ? "did not arrive in time"
                    : code == Code::peer_lost ? "has exited"
                                              : "failed to take part";
  return fail(code, fmt::format("meeting the processes of a set: process {} on {} (number {}) {}",
                                place.pid, place.host, member, why));
}

// The first member listens at the address that all know, the others at any port.
Status MeshMeeting::listen() {
  const bool is_first = own_ == 0;
  SHIMA_TRY_ASSIGN(const Addresses found,
                   addresses_of(is_first ? call_.meeting_host.c_str() : nullptr,
                                is_first ? call_.meeting_port : "0", AI_PASSIVE));
  int why = EADDRNOTAVAIL;
  // A socket of IPv6 takes connections of both kinds.
  for (const bool six : {true, false}) {
    for (const addrinfo* one = found.all.get(); one != nullptr && !listener_; one = one->ai_next) {
      if ((one->ai_family == AF_INET6) != six) continue;
      listener_ = listening_socket(*one);
      if (!listener_) why = errno;
    }
  }
  if (!listener_)
    return fail(Code::io,
                fmt::format("meeting the processes of a set: listening at {}:{}",
                            call_.meeting_host, call_.meeting_port),
                why);
  SocketAddress address{};
  socklen_t len = sizeof address;
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &len);
  port_ = ntohs(address.sin6_port);
  return {};
}

Result<std::optional<std::pair<UniqueFd, MeshMeeting::Hello>>> MeshMeeting::admit() const {
  pollfd watched{listener_.get(), POLLIN, 0};
  if (::poll(&watched, 1, static_cast<int>(between_attempts.count())) <= 0) return std::nullopt;
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return std::nullopt;
  give_up_after(socket.get(), node_timeout());
  Hello hello;
  if (!prove_to_client(socket.get(), std::span(&call_.key, 1), spoken) ||
      !receive_all(socket.get(), &hello, sizeof hello))
    return std::nullopt;
  const bool is_known = hello.call == digest_ && hello.member > 0 &&
                        hello.member < std::ssize(call_.places) &&
                        !sockets_[static_cast<std::size_t>(hello.member)];
  if (!is_known) return std::nullopt;
  answer_at_once(socket.get());
  return std::pair(std::move(socket), hello);
}

// The other end may not listen yet.
Result<UniqueFd> MeshMeeting::connect(const std::string& host, const std::string& port,
                                      const Hello& hello) const {
  SHIMA_TRY_ASSIGN(const Addresses found, addresses_of(host.c_str(), port, 0));
  while (true) {
    int why = EHOSTUNREACH;
    for (const addrinfo* one = found.all.get(); one != nullptr; one = one->ai_next) {
      UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!socket) return fail_errno(errno, "meeting the processes of a set");
      give_up_after(socket.get(), node_timeout());
      answer_at_once(socket.get());
      if (!connect_all(socket.get(), one->ai_addr, one->ai_addrlen, node_timeout())) {
        why = errno;
        continue;
      }
      SHIMA_TRY(prove_to_server(socket.get(), call_.key, spoken));
      if (!send_all(socket.get(), &hello, sizeof hello))
        return fail_errno(errno, "meeting the processes of a set");
      return socket;
    }
    if (why != ECONNREFUSED || late())
      return fail(why == ECONNREFUSED ? Code::timed_out : Code::io,
                  fmt::format("meeting the processes of a set at {}:{}", host, port), why);
    std::this_thread::sleep_for(between_attempts);
  }
}

Result<std::vector<MeshMeeting::Facts>> MeshMeeting::exchange(Facts mine, const Status& ready) {
  const Hello hello{.call = digest_,
                    .member = own_,
                    .code = static_cast<std::uint32_t>(ready ? Code::ok : ready.error().code),
                    .cores = mine.cores,
                    .port = port_,
                    .can_pull = static_cast<std::uint16_t>(mine.can_pull)};
  auto all = own_ == 0 ? collect(hello) : ask_first(hello);
  if (!all && !ready && all.error().code == ready.error().code)
    return std::unexpected(ready.error());
  return all;
}

Result<std::vector<MeshMeeting::Facts>> MeshMeeting::collect(const Hello& mine) {
  std::vector<Hello> all(call_.places.size());
  all.front() = mine;
  int missing = static_cast<int>(all.size()) - 1;
  Hello worst = mine;
  std::optional<Clock::time_point> last_call;
  while (missing > 0 && !late() && !(last_call && Clock::now() >= *last_call)) {
    if (!last_call && may_be_missing(worst.code)) last_call = Clock::now() + grace;
    SHIMA_TRY_ASSIGN(auto came, admit());
    if (!came) continue;
    const auto member = static_cast<std::size_t>(came->second.member);
    sockets_[member] = std::move(came->first);
    all[member] = came->second;
    if (came->second.code > worst.code) worst = came->second;
    --missing;
  }
  if (missing > 0 && worst.code == 0) {
    std::size_t absent = 1;
    while (sockets_[absent]) ++absent;
    worst = {.member = static_cast<std::int32_t>(absent),
             .code = static_cast<std::uint32_t>(Code::timed_out)};
  }
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!sockets_[i]) continue;
    const bool sent = send_all(sockets_[i].get(), &worst, sizeof worst) &&
                      send_all(sockets_[i].get(), all.data(), all.size() * sizeof(Hello));
    if (!sent) return failure(Code::peer_lost, static_cast<int>(i));
  }
  if (worst.code != 0) return failure(static_cast<Code>(worst.code), worst.member);
  std::vector<Facts> facts;
  for (const Hello& one : all) facts.push_back({one.cores, one.can_pull != 0, one.port});
  return facts;
}

Result<std::vector<MeshMeeting::Facts>> MeshMeeting::ask_first(const Hello& mine) {
  SHIMA_TRY_ASSIGN(sockets_.front(), connect(call_.meeting_host, call_.meeting_port, mine));
  const int socket = sockets_.front().get();
  give_up_after(socket, milliseconds(0));  // the first one waits for all
  if (until_) {
    pollfd watched{socket, POLLIN, 0};
    const auto left =
        std::chrono::duration_cast<milliseconds>(*until_ + grace - Clock::now()).count();
    if (::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 0)
      return failure(Code::timed_out, 0);
  }
  Hello worst;
  std::vector<Hello> all(call_.places.size());
  if (!receive_all(socket, &worst, sizeof worst) ||
      !receive_all(socket, all.data(), all.size() * sizeof(Hello)))
    return failure(Code::peer_lost, 0);
  const bool is_valid = worst.member >= 0 && worst.member < std::ssize(all) &&
                        worst.code <= static_cast<std::uint32_t>(Code::internal);
  if (!is_valid) return fail(Code::io, "meeting the processes of a set", EPROTO);
  if (worst.code != 0) return failure(static_cast<Code>(worst.code), worst.member);
  std::vector<Facts> facts;
  for (const Hello& one : all) facts.push_back({one.cores, one.can_pull != 0, one.port});
  return facts;
}

// Each connects to those before it in the array, and admits those after it.
Result<std::vector<UniqueFd>> MeshMeeting::connect_all_members(const std::vector<Facts>& all) {
  const auto own = static_cast<std::size_t>(own_);
  const Hello hello{.call = digest_, .member = own_};
  for (std::size_t i = 1; i < own; ++i) {
    SHIMA_TRY_ASSIGN(sockets_[i],
                     connect(call_.places[i].host, std::to_string(all[i].port), hello));
  }
  const auto until = Clock::now() + node_timeout();
  const auto absent = [&] {
    return std::find_if(sockets_.begin() + own_ + 1, sockets_.end(),
                        [](const UniqueFd& socket) { return !socket; });
  };
  for (auto next = absent(); next != sockets_.end(); next = absent()) {
    if (Clock::now() >= until)
      return failure(Code::timed_out, static_cast<int>(next - sockets_.begin()));
    SHIMA_TRY_ASSIGN(auto came, admit());
    if (came && came->second.member > own_)
      sockets_[static_cast<std::size_t>(came->second.member)] = std::move(came->first);
  }
  for (const UniqueFd& socket : sockets_)
    if (socket) close_if_unreachable(socket.get(), node_timeout());
  return std::move(sockets_);
}

}  // namespace shima
