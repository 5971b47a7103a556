#include "net/message_stream.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace shima {
namespace {

constexpr std::size_t most_short_bytes = 64;  // of a message that may come without a buffer
constexpr const char* unreadable =
    "sending a message: the file has been truncated meanwhile, or its disk has failed";
constexpr std::size_t most_unexpected = 8;  // of those, in each lane

// By the kernel: the memory may be a part of a file, which may have been truncated. Where the
// kernel may not copy, there is no such memory (FileView).
Status copy_by_kernel(const iovec& from, std::byte* to) {
  const iovec here{to, from.iov_len};
  const ssize_t copied = ::process_vm_readv(::getpid(), &here, 1, &from, 1, 0);
  if (copied == static_cast<ssize_t>(from.iov_len)) return {};
  if (copied < 0 && (errno == EPERM || errno == ENOSYS)) {
    std::copy_n(static_cast<const std::byte*>(from.iov_base), from.iov_len, to);
    return {};
  }
  return fail(Code::no_memory, "completing a message", EFAULT);
}

bool would_block(ssize_t moved) { return moved < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

std::uint64_t MessageStream::send(std::uint32_t lane, MessageBuffer message,
                                  std::span<const iovec> rest) {
  Outgoing& added = outgoing_.emplace_back();
  added.head = {.lane = lane, .len_bytes = message.bytes().size()};
  added.bytes = std::move(message);
  added.pieces.reserve(2 + rest.size());
  added.pieces.push_back({&added.head, sizeof added.head});
  added.pieces.push_back({added.bytes.bytes().data(), added.bytes.bytes().size()});
  for (const iovec& piece : rest) {
    added.head.len_bytes += piece.iov_len;
    added.pieces.push_back(piece);
  }
  send_pending();
  return posted_++;
}

MessageStream::Expected* MessageStream::next_expected(LaneState& lane) {
  const auto next =
      std::ranges::find_if(lane.expected, [](const Expected& one) { return !one.has_arrived; });
  return next == lane.expected.end() ? nullptr : &*next;
}

std::uint64_t MessageStream::expect(std::uint32_t lane, MessageBuffer buffer) {
  LaneState& of = lanes_[lane];
  Expected expected{.number = of.provided++, .buffer = std::move(buffer), .has_arrived = false};
  if (!of.unexpected.empty()) {
    fill(expected, of.unexpected.front());
    of.unexpected.pop_front();
  }
  of.expected.push_back(std::move(expected));
  return of.provided - 1;
}

std::optional<MessageBuffer> MessageStream::take(std::uint32_t lane, std::uint64_t number) {
  auto& expected = lanes_[lane].expected;
  const auto found = std::ranges::find(expected, number, &Expected::number);
  if (found == expected.end() || !found->has_arrived) return std::nullopt;
  std::optional<MessageBuffer> taken(std::move(found->buffer));
  expected.erase(found);
  return taken;
}

bool MessageStream::progress() {
  bool moved = false;
  while (status_ && send_some()) moved = true;
  while (status_ && receive_some()) moved = true;
  return moved;
}

void MessageStream::send_pending() {
  while (status_ && send_some()) {
  }
}

std::size_t MessageStream::abandon_unsent(std::size_t most_copied_bytes) noexcept {
  if (outgoing_.empty()) return 0;
  Outgoing& first = outgoing_.front();
  const std::size_t kept = first.has_begun ? 1 : 0;
  posted_ -= outgoing_.size() - kept;
  outgoing_.resize(kept);
  if (kept == 0) return 0;
  const std::size_t copied_bytes = unsent_bytes(first);
  const Status copied = caught([&]() -> Status {
    if (copied_bytes > most_copied_bytes)
      return fail(Code::no_memory, "completing a message", ENOMEM);
    SHIMA_TRY_ASSIGN(MessageBuffer copy, copy_of_unsent(first));
    first.bytes = std::move(copy);
    first.pieces.assign(1, {first.bytes.bytes().data(), first.bytes.bytes().size()});
    first.next = 0;
    return {};
  });
  if (copied) return copied_bytes;
  outgoing_.clear();
  status_ = copied;
  return 0;
}

std::size_t MessageStream::unsent_bytes(const Outgoing& message) {
  std::size_t len_bytes = 0;
  for (const iovec& piece : std::span(message.pieces).subspan(message.next))
    len_bytes += piece.iov_len;
  return len_bytes;
}

Result<MessageBuffer> MessageStream::copy_of_unsent(const Outgoing& message) {
  MessageBuffer copy(unsent_bytes(message));
  std::span<std::byte> room = copy.bytes();
  for (const iovec& piece : std::span(message.pieces).subspan(message.next)) {
    SHIMA_TRY(copy_by_kernel(piece, room.data()));
    room = room.subspan(piece.iov_len);
  }
  return copy;
}

short MessageStream::events() const {
  if (!status_) return 0;
  return static_cast<short>(POLLIN | (outgoing_.empty() ? 0 : POLLOUT));
}

// Returns whether to try again: something has gone.
bool MessageStream::send_some() {
  if (outgoing_.empty()) return false;
  Outgoing& first = outgoing_.front();
  msghdr message{};
  message.msg_iov = first.pieces.data() + first.next;
  message.msg_iovlen = std::min<std::size_t>(first.pieces.size() - first.next, IOV_MAX);
  const ssize_t moved = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (moved < 0) {
    if (!would_block(moved))
      status_ = fail(Code::io, errno == EFAULT ? unreadable : "sending a message", errno);
    return false;
  }
  first.has_begun = true;
  skip(first, static_cast<std::size_t>(moved));
  if (first.next == first.pieces.size()) {
    outgoing_.pop_front();
    ++sent_;
  }
  return true;
}

ssize_t MessageStream::receive_into(std::span<std::byte> room) {
  if (ahead_.empty()) return ::recv(socket_, room.data(), room.size(), MSG_DONTWAIT);
  const auto len = static_cast<std::ptrdiff_t>(std::min(room.size(), ahead_.size()));
  std::copy_n(ahead_.begin(), len, room.begin());
  ahead_.erase(ahead_.begin(), ahead_.begin() + len);
  return len;
}

void MessageStream::skip(Outgoing& message, std::size_t len_bytes) {
  for (; message.next < message.pieces.size(); ++message.next) {
    iovec& piece = message.pieces[message.next];
    const std::size_t here = std::min(len_bytes, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + here;
    piece.iov_len -= here;
    len_bytes -= here;
    if (piece.iov_len > 0) return;
  }
}

// Returns whether to try again: something has arrived.
bool MessageStream::receive_some() {
  std::byte* to = reinterpret_cast<std::byte*>(&head_) + received_;
  std::size_t wanted = sizeof(Head) - received_;
  if (has_head_) {
    to = arriving_.bytes().data() + received_;
    wanted = arriving_.bytes().size() - received_;
  }
  const ssize_t moved = receive_into({to, wanted});
  if (would_block(moved)) return false;
  if (moved <= 0) {
    status_ = fail(Code::io, "receiving a message", moved == 0 ? ECONNRESET : errno);
    return false;
  }
  received_ += static_cast<std::size_t>(moved);
  if (!has_head_) {
    if (received_ < sizeof(Head)) return true;
    if (!begin_message()) return false;
    received_ = 0;
    has_head_ = true;
  }
  if (received_ == arriving_.bytes().size()) end_message();
  return true;
}

bool MessageStream::begin_message() {
  if (head_.lane >= lane_count) {
    fail_malformed("of no lane");
    return false;
  }
  LaneState& lane = lanes_[head_.lane];
  Expected* const expected = next_expected(lane);
  if (expected == nullptr &&
      (head_.len_bytes > most_short_bytes || lane.unexpected.size() == most_unexpected)) {
    fail_malformed("that was not asked for");
    return false;
  }
  if (expected != nullptr && head_.len_bytes > expected->buffer.capacity_bytes()) {
    fail_malformed("longer than expected");
    return false;
  }
  arrives_where_expected_ = expected != nullptr;
  arriving_ = expected != nullptr ? std::move(expected->buffer) : MessageBuffer(head_.len_bytes);
  arriving_.set_len_bytes(head_.len_bytes);
  return true;
}

void MessageStream::end_message() {
  LaneState& lane = lanes_[head_.lane];
  if (Expected* const expected = next_expected(lane); arrives_where_expected_) {
    expected->buffer = std::move(arriving_);
    expected->has_arrived = true;
  } else if (expected == nullptr) {
    lane.unexpected.push_back(std::move(arriving_));
  } else {
    fill(*expected, arriving_);  // provided while the message was arriving
  }
  has_head_ = false;
  received_ = 0;
}

void MessageStream::fill(Expected& expected, const MessageBuffer& kept) {
  if (kept.bytes().size() > expected.buffer.capacity_bytes())
    return fail_malformed("longer than expected");
  expected.buffer.set_len_bytes(kept.bytes().size());
  std::ranges::copy(kept.bytes(), expected.buffer.bytes().begin());
  expected.has_arrived = true;
}

void MessageStream::fail_malformed(const char* what) {
  status_ = fail(Code::io, std::string("a malformed message: one ") + what, EPROTO);
}

}  // namespace shima
