#include "dse/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "lapi/way/message.h"
#include "net/wire.h"

namespace shima::dse {
namespace {

constexpr std::size_t receive_bytes = std::size_t{64} << 10;

}  // namespace

Link::Link(UniqueFd socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  answer_at_once(socket_.get());
  close_if_unreachable(socket_.get(), node_timeout());
}

void Link::send(int index, const Packed& header, std::string_view data) {
  const lapi::Message head{.kind = lapi::Kind::active,
                           .header_bytes = static_cast<std::uint32_t>(header.bytes().size()),
                           .data_bytes = data.size(),
                           .address = static_cast<std::uint64_t>(index)};
  unsent_.append(reinterpret_cast<const char*>(&head), lapi::message_head_bytes);
  unsent_ += header.bytes();
  unsent_ += data;
  flush();
}

void Link::flush() {
  while (has_unsent()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data() + sent_bytes_,
                                unsent_.size() - sent_bytes_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) break;  // the end of the connection
    sent_bytes_ += static_cast<std::size_t>(sent);
  }
  unsent_.clear();
  sent_bytes_ = 0;
}

void Link::finish(std::chrono::milliseconds limit) {
  ::shutdown(socket_.get(), SHUT_WR);
  const auto until = Clock::now() + limit;
  std::array<char, 4096> dropped;
  while (Clock::now() < until) {
    pollfd watched{socket_.get(), POLLIN, 0};
    ::poll(&watched, 1, 100);
    const ssize_t got = ::recv(socket_.get(), dropped.data(), dropped.size(), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return;
  }
}

// True if a whole message has been served.
Result<bool> Link::serve_one() {
  const std::string_view all(arrived_.data() + served_bytes_, arrived_.size() - served_bytes_);
  lapi::Message head;
  if (all.size() < lapi::message_head_bytes) return false;
  std::memcpy(static_cast<void*>(&head), all.data(), lapi::message_head_bytes);
  const bool is_known = lapi::well_formed(head) && head.kind == lapi::Kind::active &&
                        head.flags == 0 && head.pieces == 0 && head.data_bytes <= most_data_bytes &&
                        head.address < handlers_.size() && handlers_[head.address];
  if (!is_known)
    return fail(Code::bad_argument,
                fmt::format("a message for a handler that is not registered ({})", head.address));
  const std::size_t header_bytes = head.header_bytes;
  const std::size_t len_bytes = lapi::message_head_bytes + header_bytes + head.data_bytes;
  if (all.size() < len_bytes) return false;
  Unpacked header(all.substr(lapi::message_head_bytes, header_bytes));
  served_bytes_ += len_bytes;
  SHIMA_TRY(handlers_[head.address](
      header, all.substr(lapi::message_head_bytes + header_bytes, head.data_bytes)));
  if (!header.is_whole())
    return fail(Code::bad_argument,
                fmt::format("a malformed message for handler {}", head.address));
  return true;
}

// Not more than one buffer a call, so that the owner looks at other things too.
Status Link::receive() {
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(served_bytes_));
  served_bytes_ = 0;
  const std::size_t before = arrived_.size();
  arrived_.resize(before + receive_bytes);
  const ssize_t got = ::recv(socket_.get(), arrived_.data() + before, receive_bytes, 0);
  const int why = got < 0 ? errno : 0;
  arrived_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got == 0 || (got < 0 && why != EAGAIN && why != EINTR))
    return fail(Code::peer_lost, "the connection has ended", why);
  while (true) {
    SHIMA_TRY_ASSIGN(const bool has_served, serve_one());
    if (!has_served) return {};
  }
}

}  // namespace shima::dse
