#include "lapi/stream/connection.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "net/own_socket.h"
#include "net/wire.h"

namespace shima::lapi {
namespace {

// A message that follows another one so soon belongs to a stream of them.
constexpr auto stream_gap = std::chrono::microseconds(3);
// A message that the program sends so soon after a reply answers what the reply was for.
constexpr auto answer_gap = std::chrono::microseconds(20);
constexpr std::size_t most_gathered_piece = std::size_t{8} << 10;

bool is_gathering_allowed() {
  const char* setting = std::getenv("SHIMA_LAPI_GATHER");
  return setting == nullptr || std::string_view(setting) != "0";
}

epoll_event watch_for(int task, bool room) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | (room ? EPOLLOUT : 0U);
  event.data.u32 = static_cast<std::uint32_t>(task);
  return event;
}

}  // namespace

Connection::Connection(UniqueFd socket, int epoll, int task)
    : Stream(task), socket_(std::move(socket)), epoll_(epoll) {
  epoll_event event = watch_for(task, false);
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event);
  keep_from_children(socket_.get());
}

// Whether a message joins what has been gathered, and learns whether replies shall wait.
bool Connection::is_gathered(std::size_t len_bytes, bool is_reply) {
  static const bool is_allowed = is_gathering_allowed();
  if (!is_allowed) return false;
  const auto now = Clock::now();
  const bool follows = now - last_push_ < stream_gap;
  if (is_reply) {
    last_reply_ = now;
  } else {
    replies_wait_ |= now - last_reply_ < answer_gap;
    last_push_ = now;
  }
  const bool fits =
      gathered_.size() + len_bytes <= buffer_bytes && len_bytes <= most_gathered_piece;
  if (!fits || !(follows || (is_reply && replies_wait_))) return false;
  has_message_ |= !is_reply || !replies_wait_;
  return true;
}

std::size_t Connection::push(std::span<const iovec> pieces, bool is_reply) {
  const std::size_t total = length_of(pieces);
  const std::lock_guard hold(sending_);
  if (has_closed_) return 0;
  if (is_gathered(total, is_reply)) {
    gather(pieces);
    return total;
  }
  if (is_full_) return 0;
  const std::size_t sent = send_with_gathered(pieces);
  if (!is_reply) last_push_ = Clock::now();  // the call may have taken longer than a gap
  return sent;
}

// The caller holds sending_. Returns how much of `pieces` has been sent.
std::size_t Connection::send_with_gathered(std::span<const iovec> pieces) {
  if (gathered_.empty()) return send(pieces);
  const std::size_t before = gathered_.size();
  std::array<iovec, most_pieces + 1> all;
  const std::size_t count = std::min(pieces.size(), most_pieces);
  all[0] = {gathered_.data(), before};
  std::copy_n(pieces.begin(), count, all.begin() + 1);
  const std::size_t sent = send(std::span(all).first(count + 1));
  const std::size_t of_gathered = has_closed_ ? before : std::min(sent, before);
  drop_sent(of_gathered);
  return has_closed_ ? 0 : sent - of_gathered;
}

void Connection::gather(std::span<const iovec> pieces) {
  if (gathered_.capacity() == 0) gathered_.reserve(buffer_bytes);
  for (const iovec& piece : pieces) {
    const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
    gathered_.insert(gathered_.end(), bytes, bytes + piece.iov_len);
  }
  has_gathered_.store(true, std::memory_order_seq_cst);
}

void Connection::flush() {
  const std::lock_guard hold(sending_);
  send_gathered();
}

void Connection::flush_messages() {
  const std::lock_guard hold(sending_);
  if (has_message_) send_gathered();
}

// Replies that no message has followed do not wait any more.
void Connection::flush_late() {
  const std::lock_guard hold(sending_);
  if (!gathered_.empty() && !has_message_) replies_wait_ = false;
  send_gathered();
}

// The caller holds sending_.
void Connection::send_gathered() {
  if (gathered_.empty() || is_full_) return;
  const iovec all{gathered_.data(), gathered_.size()};
  const std::size_t sent = send(std::span(&all, 1));
  drop_sent(has_closed_ ? gathered_.size() : sent);
}

void Connection::drop_sent(std::size_t len_bytes) {
  gathered_.erase(gathered_.begin(), gathered_.begin() + static_cast<std::ptrdiff_t>(len_bytes));
  has_message_ = !gathered_.empty();
  has_gathered_.store(has_message_, std::memory_order_seq_cst);
}

void Connection::flush_waiting() {
  constexpr int moment_ms = 10;
  if (is_full_) look_for_room(moment_ms);
  flush();
}

void Connection::look_for_room(int timeout_ms) {
  pollfd watched{socket_.get(), POLLOUT, 0};
  if (::poll(&watched, 1, timeout_ms) <= 0) return;
  const std::lock_guard hold(sending_);
  set_full(false);
}

// The caller holds sending_.
std::size_t Connection::send(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  const std::size_t total = length_of(pieces);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno == EFAULT) return send_unreadable(pieces);
  if (sent >= 0) {
    if (static_cast<std::size_t>(sent) < total) set_full(true);
    return static_cast<std::size_t>(sent);
  }
  if (errno == EAGAIN || errno == ENOBUFS)
    set_full(true);
  else
    note_closed();
  return 0;
}

// Sends the first piece, or zeros if its memory cannot be read: the stream must go on.
std::size_t Connection::send_unreadable(std::span<const iovec> pieces) {
  static constexpr std::array<std::byte, 4096> zeros{};
  const auto first =
      std::ranges::find_if(pieces, [](const iovec& piece) { return piece.iov_len > 0; });
  if (first == pieces.end()) return 0;
  ssize_t sent =
      ::send(socket_.get(), first->iov_base, first->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno == EFAULT) {
    log(LogLevel::error, "LAPI: the memory at {} cannot be read; task {} gets zeros",
        first->iov_base, task());
    sent = ::send(socket_.get(), zeros.data(), std::min(zeros.size(), first->iov_len),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  if (sent < 0) set_full(true);
  return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
}

pollfd Connection::watched() const {
  const int events = POLLIN | (is_full_ && !has_closed_ ? POLLOUT : 0);
  return {has_ended_ ? -1 : socket_.get(), static_cast<short>(events), 0};
}

// The caller holds sending_.
void Connection::set_full(bool full) {
  if (is_full_.exchange(full) == full) return;
  epoll_event event = watch_for(task(), full);
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

// What has arrived before the send has failed is still received: only receiving finds the end. The
// caller holds sending_.
void Connection::note_closed() {
  has_closed_ = true;
  set_full(false);
}

void Connection::note_end() {
  if (!has_ended_.exchange(true)) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr);
}

// The other side has ended the stream, or an error has.
void Connection::note_received_end(bool orderly) {
  is_cut_ = !orderly;
  note_end();
}

void Connection::look() {
  if (is_full_) look_for_room(0);
  if (buffered_.load(std::memory_order_relaxed) != 0 || has_ended_) return;
  if (!wants_large_) return fill();
  is_readable_ = true;  // perhaps: receive_direct() finds out
}

void Connection::expect_end() {
  last_until_ = Clock::now() + last_bytes_limit;
  ends_soon_ = true;
}

void Connection::close_if_unreachable() {
  shima::close_if_unreachable(socket_.get(), node_timeout());
}

// While the other side's window is closed, nothing is in flight, and the kernel's probes of the
// window are acknowledged.
std::optional<Clock::duration> Connection::unanswered() {
  tcp_info info{};
  socklen_t len = sizeof info;
  if (has_ended_ || ::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &len) != 0) return {};
  const auto now = Clock::now();
  if (info.tcpi_unacked == 0 && info.tcpi_probes == 0)
    unanswered_since_ = {};
  else if (unanswered_since_ == Clock::time_point{})
    unanswered_since_ = now;
  if (unanswered_since_ == Clock::time_point{})
    return info.tcpi_notsent_bytes != 0 || has_gathered() ? std::optional(Clock::duration::zero())
                                                          : std::nullopt;
  return std::min<Clock::duration>(now - unanswered_since_,
                                   std::chrono::milliseconds(info.tcpi_last_ack_recv));
}

void Connection::abort() {
  if (!has_ended_) is_cut_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);
  note_end();
}

void Connection::finish() {
  flush();
  ::shutdown(socket_.get(), SHUT_WR);
}

bool Connection::is_delivered() {
  constexpr int end_bytes = 1;  // the end of the stream counts, and is acknowledged late
  ssize_t got = 0;
  do {
    got = ::recv(socket_.get(), buffer_.get(), buffer_bytes, MSG_DONTWAIT);
  } while (got > 0);
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) return true;
  int unacknowledged = 0;
  return ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged <= end_bytes;
}

// Unread data would make close() drop what has not been sent yet.
Connection::~Connection() {
  keep_no_longer(socket_.get());
  while (::recv(socket_.get(), buffer_.get(), buffer_bytes, MSG_DONTWAIT) > 0) {
  }
}

}  // namespace shima::lapi
