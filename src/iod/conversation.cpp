#include "iod/conversation.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fault_point.h"
#include "observe/board.h"
#include "store/subfile/pieces.h"

namespace shima::iod {
namespace {

using remote::Flag;
using remote::Op;
using remote::ReplyHead;
using remote::Request;
using remote::RequestHead;

std::string printable(std::string text) {
  for (char& c : text)
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  return text;
}

// The others are short, or may wait for other clients or long for a disk.
bool needs_turn(Op op) {
  switch (op) {
    case Op::introduce:
    case Op::status:
    case Op::attach:
    case Op::open:
    case Op::lease:
    case Op::sync:
    case Op::sync_names:
    case Op::try_lock:
    case Op::unlock:
    case Op::lock_holder:
    case Op::holds:
    case Op::lease_facts:
    case Op::end_lease:
    case Op::open_path:
    case Op::sync_path:
    case Op::sync_directory:
    case Op::lock_directory:
    case Op::admit_writers:
    case Op::unlock_directory:
      return false;
    default:
      return true;
  }
}

// The data that a request brings or asks for.
std::size_t room_for(const Request& request) {
  switch (request.op()) {
    case Op::read:
      return remote::bytes_in(request.runs);
    case Op::list:
    case Op::read_text:
    case Op::list_paths:
    case Op::read_master:
    case Op::read_path:
    case Op::status:
      return remote::most_data_bytes;
    case Op::real_path:
    case Op::read_symlink:
    case Op::lock_holder:
      return remote::most_word_bytes;
    default:
      return std::max<std::size_t>(request.head.data_bytes, sizeof(remote::Facts));
  }
}

// A request that is being served, on the board.
struct ServedNow {
  ServedNow() { note_queued(1); }
  ServedNow(const ServedNow&) = delete;
  ServedNow& operator=(const ServedNow&) = delete;
  ~ServedNow() { note_queued(-1); }
};

// `more`: another reply follows, with which these bytes may travel.
Status send_pieces(int socket, std::span<const iovec> pieces, bool more) {
  std::vector<iovec> left;
  std::uint64_t left_bytes = bytes_in(pieces);
  while (left_bytes > 0) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(Code::io, "sending a reply", errno == EAGAIN ? ETIMEDOUT : errno);
    left_bytes -= static_cast<std::uint64_t>(sent);
    if (left_bytes == 0) break;
    PieceCursor cursor(pieces);
    cursor.skip(static_cast<std::uint64_t>(sent));
    std::vector<iovec> rest = cursor.take(left_bytes);
    left.swap(rest);
    pieces = left;
  }
  return {};
}

}  // namespace

Conversation::Conversation(Client& client, const Shared& shared,
                           std::chrono::milliseconds message_timeout)
    : client_(client),
      shared_(shared),
      process_{client.holder->user, client.peer},
      inbox_(client.socket.get(), message_timeout),
      data_(client.holder->memory),
      session_(client.holder->targets, client.traffic, shared.sessions, process_.name) {}

Status Conversation::hold() {
  Request request;
  bool is_chained = false;  // the last request is linked to this one
  while (true) {
    if (client_.holder->memory.is_short()) data_.release();
    SHIMA_TRY_ASSIGN(const bool goes_on, inbox_.wait([&] { data_.release(); }));
    if (!goes_on) return {};
    SHIMA_TRY(receive(request));
    const ServedNow now;
    fault_point(FaultPhase::iod_received);
    const bool is_linked = (request.head.flags & Flag::linked) != 0;
    if ((std::exchange(is_chained, is_linked) || is_linked) && has_left()) return {};
    if (request.op() == Op::join) {
      if (skips_next_)
        return fail(Code::io, "a malformed message: a call after a failed request", EPROTO);
      SHIMA_TRY(take_part());
      fault_point(FaultPhase::iod_executed);
      continue;
    }
    const auto value = skips_next_ ? skip() : execute(request);
    skips_next_ = !value && is_linked;
    fault_point(FaultPhase::iod_executed);
    SHIMA_TRY(reply(request, value));
  }
}

// Whether the client has ended the connection. One that has given up undoes what it has begun, and
// may have sent requests that would then do it again.
bool Conversation::has_left() const {
  pollfd watched{client_.socket.get(), POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) > 0;
}

Status Conversation::receive(Request& request) {
  RequestHead head;
  SHIMA_TRY(inbox_.receive(std::as_writable_bytes(std::span(&head, 1))));
  SHIMA_TRY_ASSIGN(const std::size_t rest_bytes, remote::rest_of(head));
  rest_.resize(rest_bytes);
  SHIMA_TRY(inbox_.receive(rest_));
  SHIMA_TRY_ASSIGN(request, remote::decode(head, rest_));
  if (head.serial != ++received_)
    return fail(Code::io, "a malformed message: a repeated or omitted request", EPROTO);
  data_.reserve(room_for(request));
  return inbox_.receive(data_.take(head.data_bytes));
}

// What has arrived after the request is a part of the call already. The call takes memory of its
// own.
Status Conversation::take_part() {
  DirectedCall call;
  std::memcpy(&call, data_.bytes().data(), sizeof call);
  data_.release();
  return session_.take_part(
      call, {client_.socket.get(), process_, client_.holder->call_memory, inbox_.take_rest()},
      shared_.collective);
}

Result<std::int64_t> Conversation::skip() {
  data_.cut(0);
  return fail(Code::cancelled, "not executed, because a request before it has failed", ECANCELED);
}

Result<std::int64_t> Conversation::execute(const Request& request) {
  if (request.op() == Op::introduce) {
    if (!request.words.empty()) process_.name = printable(request.words.front());
    shared_.daemon.introduce(client_, process_.name);
    return 0;
  }
  if (request.op() == Op::status) {
    std::string text = shared_.daemon.status(client_);
    text.resize(std::min(text.size(), remote::most_data_bytes));
    data_.put(std::as_bytes(std::span(text)));
    return 0;
  }
  return needs_turn(request.op()) ? execute_in_turn(request) : session_.execute(request, data_);
}

Result<std::int64_t> Conversation::execute_in_turn(const Request& request) {
  client_.activity.store(Activity::waiting, std::memory_order_relaxed);
  const FairQueue::Place place = shared_.queue.enter(process_);
  client_.activity.store(Activity::working, std::memory_order_relaxed);
  auto value = session_.execute(request, data_);
  client_.activity.store(Activity::none, std::memory_order_relaxed);
  return value;
}

Status Conversation::reply(const Request& request, const Result<std::int64_t>& value) {
  ReplyHead head{.serial = request.head.serial, .data_bytes = data_.bytes().size()};
  std::string error;
  if (value) {
    head.value = *value;
  } else {
    head.code = static_cast<std::uint32_t>(value.error().code);
    head.sys_errno = value.error().sys_errno;
    error = value.error().what.substr(0, remote::most_error_bytes);
    head.error_bytes = static_cast<std::uint32_t>(error.size());
  }
  const std::array<iovec, 3> all{{{&head, sizeof head},
                                  {error.data(), error.size()},
                                  {data_.bytes().data(), data_.bytes().size()}}};
  return send_pieces(client_.socket.get(), all, (request.head.flags & Flag::followed) != 0);
}

}  // namespace shima::iod
