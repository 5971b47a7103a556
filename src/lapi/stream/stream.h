// A stream of bytes to another task and from it, and what tells that it ends.
//
// Any thread may send; one thread at a time receives.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/clock.h"

namespace shima::lapi {

[[nodiscard]] inline std::size_t length_of(std::span<const iovec> pieces) {
  std::size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  return total;
}

// How long what a task has sent before it ended may be on its way.
inline constexpr auto last_bytes_limit = std::chrono::milliseconds(50);

class Stream {
 public:
  explicit Stream(int task) : task_(task) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  [[nodiscard]] int task() const { return task_; }
  // Sends or gathers as much as there is room for.
  [[nodiscard]] virtual std::size_t push(std::span<const iovec> pieces, bool is_reply) = 0;
  // Sends what has been gathered.
  virtual void flush() = 0;
  // The same, but for replies that wait for the next message.
  virtual void flush_messages() = 0;
  // The same, for what has waited long.
  virtual void flush_late() = 0;
  // Sends what has been gathered, or waits a moment for room.
  virtual void flush_waiting() = 0;
  [[nodiscard]] virtual bool has_gathered() const = 0;
  [[nodiscard]] virtual bool has_room() const = 0;
  // Nothing more can be sent. What has arrived can still be received.
  [[nodiscard]] virtual bool has_closed() const = 0;

  // Finds out what has arrived, and whether there is room again.
  virtual void look() = 0;
  // Whether tick() shall be called from time to time, by any thread: something else than what
  // arrives is awaited.
  [[nodiscard]] virtual bool needs_clock() const { return false; }
  virtual void tick() {}
  [[nodiscard]] virtual std::size_t pull(std::span<const iovec> pieces) = 0;
  [[nodiscard]] virtual bool has_data() const = 0;
  // What poll() shall wait for.
  [[nodiscard]] virtual pollfd watched() const = 0;
  // The other side has ended the stream, or it has failed; what had arrived has been received.
  [[nodiscard]] virtual bool has_ended() const = 0;
  // After the end: what the other side has sent has not come whole.
  [[nodiscard]] virtual bool is_cut() const = 0;
  // What the other side has sent has come whole, however the stream ends.
  virtual void note_last() {}
  // The other task has ended: the stream ends soon too.
  virtual void expect_end() {}
  // What a task has sent that has ended may still come; ends by itself.
  [[nodiscard]] virtual bool awaits_last() const { return false; }
  // Ends if the other machine does not answer, or the other task does not receive for as long.
  virtual void close_if_unreachable() = 0;
  // For how long the other machine has acknowledged nothing, although something is to be
  // acknowledged; nothing if all has been, or if that is not known. A task that does not receive
  // does not make its machine silent. One thread at a time asks, about every second.
  [[nodiscard]] virtual std::optional<Clock::duration> unanswered() { return {}; }
  // Ends both directions at once.
  virtual void abort() = 0;
  // Ends the own direction; what has been sent still arrives.
  virtual void finish() = 0;
  // Whether the kernel delivers what has been sent, also after this process has ended.
  [[nodiscard]] virtual bool is_kernels() const = 0;
  // After finish(): whether the other side has all that has been sent. Drops what arrives.
  [[nodiscard]] virtual bool is_delivered() = 0;

 private:
  int task_;
};

}  // namespace shima::lapi
