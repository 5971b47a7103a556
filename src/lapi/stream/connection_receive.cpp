// The receiving half of a connection.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "lapi/stream/careful_copy.h"
#include "lapi/stream/connection.h"

namespace shima::lapi {

// The buffer is empty. After large data there may be more, which goes to its place: then receives
// two heads, because a reply may come before; else little at first, and much while small messages
// follow each other.
void Connection::fill() {
  std::size_t most = is_stream_ ? buffer_bytes : first_bytes;
  if (after_large_) most = 2 * head_bytes;
  const ssize_t got = ::recv(socket_.get(), buffer_.get(), most, MSG_DONTWAIT);
  if (got > 0) {
    after_large_ = false;
    const auto len_bytes = static_cast<std::size_t>(got);
    is_stream_ = len_bytes == first_bytes || len_bytes == buffer_bytes;
    begin_ = 0;
    buffered_.store(len_bytes, std::memory_order_seq_cst);
    return;
  }
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) note_received_end(got == 0);
}

std::size_t Connection::pull(std::span<const iovec> pieces) {
  const std::size_t wanted = length_of(pieces);
  const bool is_large = wants_large_ || wanted >= direct_from_bytes;
  std::size_t taken = take_buffered(pieces, is_large);
  if (taken == wanted || has_ended_) return taken;
  if (wants_large_ || wanted - taken >= direct_from_bytes) {
    if (std::exchange(wants_large_, true) && !is_readable_) return taken;
    is_stream_ = false;
    taken += receive_direct(pieces, taken);
    low_water_.expect(socket_.get(), wanted - taken);
    if (taken == wanted) wants_large_ = false, is_readable_ = false;
    return taken;
  }
  is_readable_ = false;
  if (taken == 0) {
    fill();
    taken = take_buffered(pieces, false);
  }
  return taken;
}

std::size_t Connection::take_buffered(std::span<const iovec> pieces, bool is_large) {
  std::size_t left = buffered_.load(std::memory_order_relaxed);
  const std::size_t before = left;
  for (const iovec& piece : pieces) {
    if (left == 0) break;
    const std::size_t part = std::min(left, piece.iov_len);
    if (part > 0)
      std::ignore = copy_carefully(piece.iov_base, buffer_.get() + begin_, part, is_large);
    begin_ += part;
    left -= part;
  }
  if (left != before) buffered_.store(left, std::memory_order_seq_cst);
  return before - left;
}

// Receives behind the first `skip` bytes of the pieces.
std::size_t Connection::receive_direct(std::span<const iovec> pieces, std::size_t skip) {
  std::array<iovec, most_pieces> parts;
  std::size_t count = 0;
  for (const iovec& piece : pieces.first(std::min(pieces.size(), most_pieces))) {
    const std::size_t done = std::min(skip, piece.iov_len);
    skip -= done;
    if (done == piece.iov_len) continue;
    parts[count++] = {static_cast<std::byte*>(piece.iov_base) + done, piece.iov_len - done};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  after_large_ = true;
  if (got > 0) {
    // Less than wanted: there is no more at present.
    is_readable_ = static_cast<std::size_t>(got) == length_of(std::span(parts).first(count));
    return static_cast<std::size_t>(got);
  }
  if (got < 0 && errno == EFAULT) return drop_unwritable(parts[0].iov_len);
  is_readable_ = false;
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) note_received_end(got == 0);
  return 0;
}

// Drops data for memory that cannot be written: what follows it belongs to other messages.
std::size_t Connection::drop_unwritable(std::size_t most) {
  const ssize_t got =
      ::recv(socket_.get(), buffer_.get(), std::min(most, buffer_bytes), MSG_DONTWAIT);
  if (got <= 0) return 0;
  log(LogLevel::error, "LAPI: {} bytes from task {} are dropped: their memory cannot be written",
      got, task());
  return static_cast<std::size_t>(got);
}

}  // namespace shima::lapi
