#include "store/remote/connection.h"

#include <fmt/format.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "net/own_socket.h"
#include "net/wire.h"
#include "store/subfile/pieces.h"

namespace shima::remote {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t most_unused = 64;  // connections to a node
constexpr std::uint32_t most_untaken = 32;

// A node that says nothing for so long is asked whether it lives, for as long again at most.
milliseconds patience() { return milliseconds(node_timeout()) / 2; }

std::unexpected<Error> failure_at(const Node& node, std::string_view doing, int sys_errno) {
  return fail(Code::io, fmt::format("{} on I/O node {}", doing, node.name()), sys_errno);
}

// A socket connected to the node, with time limits.
Result<UniqueFd> connect_to_node(const Node& node, milliseconds timeout) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(node.host.c_str(), node.port.c_str(), &wanted, &found);
  if (error != 0)
    return failure_at(node, fmt::format("finding the address ({})", ::gai_strerror(error)),
                      EHOSTUNREACH);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
  int why = EHOSTUNREACH;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) continue;
    give_up_after(socket.get(), timeout);
    answer_at_once(socket.get());
    if (connect_all(socket.get(), one->ai_addr, one->ai_addrlen, timeout)) return socket;
    why = errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno;
  }
  return failure_at(node, "connecting; is it running?", why);
}

std::string own_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} ({}) on {}", ::getpid(), program_invocation_short_name,
                     host.data())
      .substr(0, most_word_bytes);
}

struct Unused {
  std::mutex mutex;
  std::map<std::string, std::vector<std::unique_ptr<Connection>>> of_node;
};

// See round_trips().
std::atomic<bool> has_sent = false;
std::atomic<std::uint64_t> turns = 0;

// Never destroyed: threads may use files until the process ends.
Unused& unused() {
  static auto* const made = new Unused;
  return *made;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const Node& node,
                                                     const std::string& key_file) {
  SHIMA_TRY_ASSIGN(const Key key, read_key(key_file));
  SHIMA_TRY_ASSIGN(UniqueFd socket, connect_to_node(node, node_timeout()));
  if (const Status proved = prove_to_server(socket.get(), key, spoken); !proved)
    return fail(proved.error().code,
                fmt::format("{} (I/O node {}, key {})", proved.error().what, node.name(), key_file),
                proved.error().sys_errno);
  give_up_after(socket.get(), patience());
  keep_from_children(socket.get());
  std::unique_ptr<Connection> made(new Connection(node, std::move(socket)));
  Request introduction;
  introduction.head.op = static_cast<std::uint32_t>(Op::introduce);
  introduction.words = {own_name()};
  SHIMA_TRY(made->call(introduction));
  return made;
}

Connection::~Connection() { keep_no_longer(socket_.get()); }

std::unexpected<Error> Connection::failure(std::string_view doing, int sys_errno) const {
  return failure_at(node_, doing, sys_errno);
}

std::unexpected<Error> Connection::break_off(int sys_errno) {
  is_broken_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
  return failure("the connection has ended; open the file again. Communicating", sys_errno);
}

// A node that computes or waits for its disk accepts connections meanwhile; a stopped one does not
// say anything over them.
bool Connection::is_node_alive() const {
  const auto socket = connect_to_node(node_, patience());
  return socket && hears_server(socket->get());
}

Result<std::size_t> Connection::move_some(std::span<const iovec> pieces, bool sending) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = std::min<std::size_t>(pieces.size(), IOV_MAX);
  while (true) {
    const ssize_t moved = sending ? ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL)
                                  : ::recvmsg(socket_.get(), &message, 0);
    if (moved > 0) return static_cast<std::size_t>(moved);
    if (moved == 0) return break_off(ECONNRESET);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return break_off(errno);
    if (!is_node_alive()) return break_off(ETIMEDOUT);
  }
}

Status Connection::move(std::span<const iovec> pieces, bool sending) {
  std::uint64_t left = shima::bytes_in(pieces);
  std::vector<iovec> rest;
  while (left > 0) {
    SHIMA_TRY_ASSIGN(const std::size_t moved, move_some(pieces, sending));
    left -= moved;
    if (left == 0) break;
    PieceCursor cursor(pieces);
    cursor.skip(moved);
    std::vector<iovec> remaining = cursor.take(left);
    rest.swap(remaining);
    pieces = rest;
  }
  return {};
}

Status Connection::move(void* data, std::size_t len_bytes, bool sending) {
  const iovec piece{data, len_bytes};
  return move(std::span(&piece, 1), sending);
}

Status Connection::send(Request request, std::span<const iovec> data) {
  if (is_broken_) return break_off(ECONNRESET);
  request.head.serial = ++sent_;
  std::vector<std::byte> head = encode(std::move(request), shima::bytes_in(data));
  std::vector<iovec> all{{head.data(), head.size()}};
  all.insert(all.end(), data.begin(), data.end());
  has_sent.store(true, std::memory_order_relaxed);
  return move(all, true);
}

Status Connection::send_together(std::vector<Request> requests,
                                 std::span<const std::string_view> data) {
  if (is_broken_) return break_off(ECONNRESET);
  std::vector<std::vector<std::byte>> heads;
  heads.reserve(requests.size());
  std::vector<iovec> all;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].head.serial = ++sent_;
    heads.push_back(encode(std::move(requests[i]), data[i].size()));
    all.push_back({heads.back().data(), heads.back().size()});
    if (!data[i].empty()) all.push_back({const_cast<char*>(data[i].data()), data[i].size()});
  }
  has_sent.store(true, std::memory_order_relaxed);
  return move(all, true);
}

// Returns how many of the bytes that follow the head have been received into the pieces, by the
// same system call: only if no other reply can follow.
Result<std::size_t> Connection::receive_head(ReplyHead& head, std::span<const iovec> pieces) {
  if (sent_ != answered_ + 1 || pieces.empty() || pieces.size() >= IOV_MAX) {
    SHIMA_TRY(move(&head, sizeof head, false));
    return 0;
  }
  std::vector<iovec> all{{&head, sizeof head}};
  all.insert(all.end(), pieces.begin(), pieces.end());
  SHIMA_TRY_ASSIGN(const std::size_t got, move_some(all, false));
  if (got >= sizeof head) return got - sizeof head;
  SHIMA_TRY(move(reinterpret_cast<std::byte*>(&head) + got, sizeof head - got, false));
  return 0;
}

Status Connection::tell(const Request& request) {
  // Replies that the client does not take must fit into the buffers of the sockets.
  if (told_ >= most_untaken) SHIMA_TRY(skip_replies());
  SHIMA_TRY(send(request, {}));
  ++told_;
  return {};
}

Status Connection::skip_replies() {
  for (; told_ > 0 && !is_broken_; --told_) std::ignore = receive_next({});
  return is_broken_ ? Status(break_off(ECONNRESET)) : Status{};
}

Result<Reply> Connection::receive(std::span<const iovec> pieces) {
  if (told_ > 0) SHIMA_TRY(skip_replies());
  return receive_next(pieces);
}

Result<Reply> Connection::receive_next(std::span<const iovec> pieces) {
  if (is_broken_) return break_off(ECONNRESET);
  if (has_sent.load(std::memory_order_relaxed) && has_sent.exchange(false)) ++turns;
  ReplyHead head;
  SHIMA_TRY_ASSIGN(const std::size_t got, receive_head(head, pieces));
  if (!check(head, ++answered_, shima::bytes_in(pieces)) ||
      got > head.error_bytes + head.data_bytes || (head.error_bytes > 0 && head.data_bytes > 0))
    return break_off(EPROTO);
  std::string error(head.error_bytes, '\0');
  if (!error.empty()) {
    std::size_t at = 0;
    for (const iovec& piece : PieceCursor(pieces).take(got)) {
      std::memcpy(error.data() + at, piece.iov_base, piece.iov_len);
      at += piece.iov_len;
    }
    SHIMA_TRY(move(error.data() + at, error.size() - at, false));
  } else if (got < head.data_bytes) {
    PieceCursor cursor(pieces);
    cursor.skip(got);
    SHIMA_TRY(move(cursor.take(head.data_bytes - got), false));
  }
  if (head.code != static_cast<std::uint32_t>(Code::ok))
    return fail(static_cast<Code>(head.code), fmt::format("{} on I/O node {}", error, node_.name()),
                head.sys_errno);
  return Reply{head.value, head.data_bytes};
}

Result<Reply> Connection::call(const Request& request) {
  SHIMA_TRY(send(request, {}));
  return receive({});
}

Result<Reply> Connection::call(const Request& request, std::span<const std::byte> data) {
  const iovec piece{const_cast<std::byte*>(data.data()), data.size()};
  SHIMA_TRY(send(request, std::span(&piece, 1)));
  return receive({});
}

Result<Reply> Connection::call(const Request& request, std::vector<std::byte>& answer,
                               std::size_t most_bytes) {
  answer.resize(most_bytes);
  SHIMA_TRY(send(request, {}));
  const iovec piece{answer.data(), answer.size()};
  SHIMA_TRY_ASSIGN(const Reply reply, receive(std::span(&piece, 1)));
  answer.resize(reply.data_bytes);
  return reply;
}

bool Connection::is_fresh() const {
  std::byte next{};
  return !is_broken_ && sent_ == answered_ &&
         ::recv(socket_.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool Connection::has_ended() const {
  pollfd watched{socket_.get(), POLLRDHUP, 0};
  return is_broken_ || (::poll(&watched, 1, 0) > 0 && watched.revents != 0);
}

std::uint64_t round_trips() { return turns; }

Result<std::unique_ptr<Connection>> take_connection(const Node& node, const std::string& key_file) {
  {
    Unused& all = unused();
    const std::lock_guard hold(all.mutex);
    auto& list = all.of_node[node.name()];
    while (!list.empty()) {
      auto last = std::move(list.back());
      list.pop_back();
      if (last->is_fresh()) return last;
    }
  }
  return Connection::open(node, key_file);
}

void keep_connection(std::unique_ptr<Connection> connection) {
  if (!connection || !connection->is_fresh()) return;
  Unused& all = unused();
  const std::lock_guard hold(all.mutex);
  auto& list = all.of_node[connection->node().name()];
  if (list.size() < most_unused) list.push_back(std::move(connection));
}

}  // namespace shima::remote
