#include "iod/inbox.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shima::iod {
namespace {

using std::chrono::milliseconds;

// A client that has been silent for so long gets no memory until its next request.
constexpr milliseconds silence{1000};

ssize_t receive_now(int socket, std::span<std::byte> room) {
  ssize_t len = -1;
  do {
    len = ::recv(socket, room.data(), room.size(), 0);
  } while (len < 0 && errno == EINTR);
  return len;
}

}  // namespace

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the buffer is filled before it is read
Inbox::Inbox(int socket, milliseconds message_timeout)
    : socket_(socket),
      message_timeout_(message_timeout),
      slice_(std::min(silence, message_timeout)) {
  set_patience(slice_);
}

void Inbox::set_patience(milliseconds patience) {
  const timeval limit{patience.count() / 1000, patience.count() % 1000 * 1000};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

Result<bool> Inbox::wait(const std::function<void()>& on_silence) {
  if (holds_more()) return true;
  begin_ = end_ = 0;
  ssize_t len = receive_now(socket_, buffer_);
  if (len < 0 && errno == EAGAIN) {
    on_silence();
    set_patience(milliseconds(0));  // without limit
    len = receive_now(socket_, buffer_);
    const int why = errno;
    set_patience(slice_);
    errno = why;
  }
  if (len == 0 || (len < 0 && errno == ECONNRESET)) return false;
  if (len < 0) return fail(Code::io, "receiving a request", errno);
  end_ = static_cast<std::size_t>(len);
  return true;
}

Result<std::size_t> Inbox::receive_some(std::span<std::byte> room) {
  milliseconds waited{0};
  while (true) {
    const ssize_t len = receive_now(socket_, room);
    if (len > 0) return static_cast<std::size_t>(len);
    if (len == 0) return fail(Code::io, "receiving the rest of a request", ECONNRESET);
    if (errno != EAGAIN) return fail(Code::io, "receiving the rest of a request", errno);
    waited += slice_;
    if (waited >= message_timeout_)
      return fail(Code::io, "receiving the rest of a request", ETIMEDOUT);
  }
}

std::vector<std::byte> Inbox::take_rest() {
  const std::span rest = std::span(buffer_).subspan(begin_, end_ - begin_);
  begin_ = end_;
  return {rest.begin(), rest.end()};
}

Status Inbox::receive(std::span<std::byte> room) {
  while (!room.empty()) {
    if (!holds_more() && room.size() < buffer_.size()) {
      SHIMA_TRY_ASSIGN(end_, receive_some(buffer_));
      begin_ = 0;
    }
    std::size_t len = std::min(room.size(), end_ - begin_);
    if (len > 0) {
      std::memcpy(room.data(), buffer_.data() + begin_, len);
      begin_ += len;
    } else {
      SHIMA_TRY_ASSIGN(len, receive_some(room));
    }
    room = room.subspan(len);
  }
  return {};
}

}  // namespace shima::iod
