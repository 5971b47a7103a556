// A stream of bytes to another task and from it over one TCP connection.
//
// Small messages that follow each other at once are gathered and sent together: the first goes out
// at once, and so does one after a pause. A reply waits for the program's next message if that has
// come soon after the last reply (ping-pong): one packet and one wake-up instead of two. Small
// receives go through a buffer, so that one call
// brings many messages; large data goes straight to its place. Any thread may send; one thread at
// a time receives.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "lapi/stream/low_water.h"
#include "lapi/stream/stream.h"

namespace shima::lapi {

class Connection final : public Stream {
 public:
  // The socket does not block. It is watched by `epoll` under the number of the task.
  Connection(UniqueFd socket, int epoll, int task);
  ~Connection() override;

  [[nodiscard]] std::size_t push(std::span<const iovec> pieces, bool is_reply) override;
  void flush() override;
  void flush_messages() override;
  void flush_late() override;
  void flush_waiting() override;
  [[nodiscard]] bool has_gathered() const override {
    return has_gathered_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool has_room() const override {
    return !is_full_.load(std::memory_order_seq_cst) && !has_closed();
  }
  [[nodiscard]] bool has_closed() const override {
    return has_closed_.load(std::memory_order_seq_cst);
  }

  // Asks the kernel.
  void look() override;
  [[nodiscard]] std::size_t pull(std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_data() const override {
    return buffered_.load(std::memory_order_seq_cst) != 0 ||
           (is_readable_.load(std::memory_order_seq_cst) && !has_ended());
  }
  [[nodiscard]] pollfd watched() const override;
  [[nodiscard]] bool has_ended() const override {
    return has_ended_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool is_cut() const override { return is_cut_ && !has_last_; }
  void note_last() override { has_last_ = true; }
  void expect_end() override;
  [[nodiscard]] bool awaits_last() const override {
    return ends_soon_ && !has_ended_ && Clock::now() < last_until_;
  }
  [[nodiscard]] bool needs_clock() const override { return awaits_last(); }
  void close_if_unreachable() override;
  [[nodiscard]] std::optional<Clock::duration> unanswered() override;
  void abort() override;
  // Nothing is received any more, and the end of the stream wakes no thread.
  void stop_watching() { note_end(); }
  void finish() override;
  [[nodiscard]] bool is_kernels() const override { return true; }
  // Whether the other machine has it. Were the socket closed before, the kernel would answer what
  // arrives with a reset, which ends sending.
  [[nodiscard]] bool is_delivered() override;

  // What may follow large data; the head of a message.
  static constexpr std::size_t head_bytes = 60;

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 10;
  static constexpr std::size_t first_bytes = std::size_t{8} << 10;
  static constexpr std::size_t most_pieces = 64;
  // Data of this size is not copied through a buffer.
  static constexpr std::size_t direct_from_bytes = std::size_t{16} << 10;

  [[nodiscard]] std::size_t send(std::span<const iovec> pieces);
  [[nodiscard]] std::size_t send_unreadable(std::span<const iovec> pieces);
  void gather(std::span<const iovec> pieces);
  [[nodiscard]] bool is_gathered(std::size_t len_bytes, bool is_reply);
  void send_gathered();
  [[nodiscard]] std::size_t send_with_gathered(std::span<const iovec> pieces);
  void drop_sent(std::size_t len_bytes);
  void look_for_room(int timeout_ms);
  void set_full(bool full);
  void note_closed();
  void note_end();
  void note_received_end(bool orderly);
  void fill();
  [[nodiscard]] std::size_t take_buffered(std::span<const iovec> pieces, bool is_large);
  [[nodiscard]] std::size_t receive_direct(std::span<const iovec> pieces, std::size_t skip);
  [[nodiscard]] std::size_t drop_unwritable(std::size_t most);

  UniqueFd socket_;
  int epoll_;
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> has_closed_{false};
  std::atomic<bool> is_cut_{false};
  std::atomic<bool> has_last_{false};   // all that the other side has sent has come
  std::atomic<bool> ends_soon_{false};  // the other task has ended
  Clock::time_point last_until_;        // set before

  std::mutex sending_;
  std::vector<std::byte> gathered_;
  Clock::time_point last_push_;
  Clock::time_point last_reply_;
  bool replies_wait_ = false;
  bool has_message_ = false;  // has gathered more than replies
  std::atomic<bool> has_gathered_{false};
  std::atomic<bool> is_full_{false};

  std::unique_ptr<std::byte[]> buffer_ = std::make_unique<std::byte[]>(buffer_bytes);
  std::size_t begin_ = 0;
  std::atomic<std::size_t> buffered_{0};
  std::atomic<bool> is_readable_{false};
  bool wants_large_ = false;
  bool is_stream_ = false;
  bool after_large_ = false;
  LowWater low_water_;

  Clock::time_point unanswered_since_;
};

}  // namespace shima::lapi
