// Messages in lanes over a connection, in both directions, without blocking.
//
// A message is a head of 16 bytes and its bytes; the messages of a lane keep their order. The n-th
// message of a lane fills the n-th buffer that was provided for it. A message without a buffer is
// kept if it is short, as long as there are few; else the peer has broken the rules, and the stream
// fails. A stream that has failed, or whose peer has closed it, moves nothing any more, but what
// has arrived can be taken.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/message_buffer.h"

namespace shima {

class MessageStream {
 public:
  static constexpr std::uint32_t lane_count = 8;

  // The socket must outlive the stream; its mode does not matter. `ahead`: what has been received
  // from it of the first messages.
  explicit MessageStream(int socket, std::span<const std::byte> ahead = {})
      : socket_(socket), ahead_(ahead.begin(), ahead.end()) {}

  // Returns the number of the message: how many were sent before. `rest`: where more of its bytes
  // are, which must stay there until it has been sent.
  std::uint64_t send(std::uint32_t lane, MessageBuffer message, std::span<const iovec> rest = {});
  // How many messages the system has taken.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  // Provides the buffer for the next message of the lane; returns its number in the lane. A kept
  // message that is too long for it makes the stream fail.
  std::uint64_t expect(std::uint32_t lane, MessageBuffer buffer);
  // The message with this number, once it has arrived; only once.
  [[nodiscard]] std::optional<MessageBuffer> take(std::uint32_t lane, std::uint64_t number);
  // Whether a message has arrived in the lane for which no buffer was provided.
  [[nodiscard]] bool has_unexpected(std::uint32_t lane) const {
    return !lanes_[lane].unexpected.empty();
  }

  // Moves what can be moved now; returns whether there was anything.
  bool progress();
  // The same, but receives nothing: what the peer sends next may be no message.
  void send_pending();
  // Gives up the messages that have not been sent. One that has begun is completed, from a copy of
  // at most so many bytes; else the stream fails. So the memory of what was to be sent (`rest`) is
  // not used any more. Returns the length of the copy. May be called again.
  std::size_t abandon_unsent(std::size_t most_copied_bytes) noexcept;
  // Why nothing moves any more; ok: it may move.
  [[nodiscard]] const Status& status() const { return status_; }
  void fail_with(std::unexpected<Error> error) { status_ = std::move(error); }
  // The events to wait for (poll(2)).
  [[nodiscard]] short events() const;
  [[nodiscard]] int socket() const { return socket_; }

 private:
  struct Head {
    std::uint32_t lane = 0;
    std::uint32_t reserved = 0;
    std::uint64_t len_bytes = 0;
  };
  static_assert(sizeof(Head) == 16);
  struct Outgoing {
    Head head;
    MessageBuffer bytes;
    std::vector<iovec> pieces;  // of the head, of the bytes, and the rest
    std::size_t next = 0;       // the first of them that was not sent
    bool has_begun = false;     // some bytes of it were sent
  };
  struct Expected {
    std::uint64_t number = 0;
    MessageBuffer buffer;
    bool has_arrived = false;
  };
  struct LaneState {
    std::deque<Expected> expected;         // not yet taken, in order
    std::deque<MessageBuffer> unexpected;  // arrived
    std::uint64_t provided = 0;
  };
  [[nodiscard]] bool send_some();
  [[nodiscard]] static std::size_t unsent_bytes(const Outgoing& message);
  [[nodiscard]] static Result<MessageBuffer> copy_of_unsent(const Outgoing& message);
  static void skip(Outgoing& message, std::size_t len_bytes);
  [[nodiscard]] bool receive_some();
  [[nodiscard]] bool begin_message();
  void end_message();
  [[nodiscard]] static Expected* next_expected(LaneState& lane);
  void fill(Expected& expected, const MessageBuffer& kept);
  void fail_malformed(const char* what);

  [[nodiscard]] ssize_t receive_into(std::span<std::byte> room);

  int socket_;
  std::deque<std::byte> ahead_;
  Status status_;
  std::array<LaneState, lane_count> lanes_;
  std::deque<Outgoing> outgoing_;
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  Head head_;  // of the message that arrives
  std::size_t received_ = 0;
  bool has_head_ = false;  // of the message that arrives; then:
  MessageBuffer arriving_;
  bool arrives_where_expected_ = false;
};

}  // namespace shima
