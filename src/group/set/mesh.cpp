#include "group/set/mesh.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "net/own_socket.h"

namespace shima {
namespace {

// No message of a collective call is longer (a window and its description).
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
constexpr std::chrono::milliseconds longest_farewell{1000};

}  // namespace

Mesh::Mesh(std::vector<UniqueFd> sockets, int own) : own_(own), peers_(sockets.size()) {
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (!sockets[i]) continue;
    keep_from_children(sockets[i].get());
    peers_[i].socket = std::move(sockets[i]);
  }
}

Mesh::~Mesh() {
  for (int member = 0; member < size(); ++member)
    if (member != own_) send(member, 0, Kind::farewell, MessageBuffer());
  const auto until = Clock::now() + longest_farewell;
  const auto all_left = [&] {
    return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.outgoing.empty(); });
  };
  while (!all_left() && Clock::now() < until) {
    poll();
    ::usleep(100);
  }
  for (const Peer& peer : peers_)
    if (peer.socket) keep_no_longer(peer.socket.get());
}

std::uint64_t Mesh::send(int to, std::uint64_t channel, Kind kind, MessageBuffer bytes,
                         Keeps keeps) {
  const std::lock_guard hold(mutex_);
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  const std::uint64_t number = ++peer.sent;
  const std::uint64_t kept = keeps == Keeps::yes ? number : 0;
  if (peer.socket) {
    const Head head{bytes.bytes().size(), channel, static_cast<std::uint16_t>(kind), {}};
    peer.outgoing.push_back({head, std::move(bytes), 0, kept});
    write_some(peer);
  } else if (kept != 0) {
    peer.kept[kept] = std::move(bytes);  // that member has left, and takes part in nothing more
  }
  return number;
}

std::optional<MessageBuffer> Mesh::take_back(int to, std::uint64_t number) {
  const std::lock_guard hold(mutex_);
  auto found = peers_[static_cast<std::size_t>(to)].kept.extract(number);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

std::optional<Mesh::Message> Mesh::take(std::uint64_t channel) {
  const std::lock_guard hold(mutex_);
  auto& waiting = inbox_[channel];
  if (waiting.empty()) return std::nullopt;
  std::optional<Message> first(std::move(waiting.front()));
  waiting.pop_front();
  return first;
}

void Mesh::forget(std::uint64_t channel) {
  const std::lock_guard hold(mutex_);
  inbox_.erase(channel);
}

void Mesh::poll() noexcept {
  const std::lock_guard hold(mutex_);
  for (int member = 0; member < size(); ++member) {
    Peer& peer = peers_[static_cast<std::size_t>(member)];
    if (!peer.socket) continue;
    const Status moved = caught([&]() -> Status {
      write_some(peer);
      read_some(peer, member);
      return {};
    });
    if (!moved) lose(member);  // no memory: the connection cannot be used any more
  }
}

Status Mesh::check() const {
  const int lost = lost_.load();
  if (lost < 0) return {};
  return fail(Code::peer_lost,
              fmt::format("the connection to member {} of the set has ended", lost));
}

bool Mesh::is_gone(int member) {
  const std::lock_guard hold(mutex_);
  return member != own_ && !peers_[static_cast<std::size_t>(member)].socket;
}

// --- one connection -----------------------------------------------------------------------------

void Mesh::write_some(Peer& peer) {
  while (!peer.outgoing.empty() && peer.socket) {
    Outgoing& next = peer.outgoing.front();
    const auto bytes = next.bytes.bytes();
    const std::size_t of_head = std::min(next.done_bytes, sizeof next.head);
    const std::size_t of_bytes = next.done_bytes - of_head;
    const std::array<iovec, 2> pieces{
        {{reinterpret_cast<std::byte*>(&next.head) + of_head, sizeof next.head - of_head},
         {bytes.data() + of_bytes, bytes.size() - of_bytes}}};
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const ssize_t sent = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // if the connection has ended, reading tells that
    next.done_bytes += static_cast<std::size_t>(sent);
    if (next.done_bytes < sizeof next.head + bytes.size()) continue;
    if (next.kept != 0) peer.kept[next.kept] = std::move(next.bytes);
    peer.outgoing.pop_front();
  }
}

bool Mesh::read_part(Peer& peer, void* data, std::size_t len_bytes, std::size_t& done) {
  while (done < len_bytes) {
    const ssize_t n =
        ::recv(peer.socket.get(), static_cast<char*>(data) + done, len_bytes - done, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
      keep_no_longer(peer.socket.get());
      peer.socket = UniqueFd();
      for (Outgoing& one : peer.outgoing)
        if (one.kept != 0) peer.kept[one.kept] = std::move(one.bytes);
      peer.outgoing.clear();
      if (!peer.has_left) lose(static_cast<int>(&peer - peers_.data()));
      return false;
    }
    done += static_cast<std::size_t>(n);
  }
  return true;
}

void Mesh::read_some(Peer& peer, int from) {
  while (peer.socket) {
    if (!read_part(peer, &peer.head, sizeof peer.head, peer.head_bytes)) return;
    if (peer.head.len_bytes > most_bytes) return lose(from);
    if (peer.incoming_bytes == 0 && peer.incoming.capacity_bytes() < peer.head.len_bytes)
      peer.incoming = MessageBuffer(peer.head.len_bytes);
    if (!read_part(peer, peer.incoming.bytes().data(), peer.head.len_bytes, peer.incoming_bytes))
      return;
    arrived(peer, from);
  }
}

void Mesh::arrived(Peer& peer, int from) {
  const auto kind = static_cast<Kind>(peer.head.kind);
  peer.head_bytes = 0;
  peer.incoming_bytes = 0;
  if (kind == Kind::farewell) {
    peer.has_left = true;
    return;
  }
  peer.incoming.set_len_bytes(peer.head.len_bytes);
  inbox_[peer.head.channel].push_back({from, kind, std::exchange(peer.incoming, {})});
}

void Mesh::lose(int member) {
  int none = -1;
  lost_.compare_exchange_strong(none, member);
}

}  // namespace shima
