// A stream of bytes to another task and from it by UCX, beside the TCP connection of the pair.
//
// The connection authenticates the tasks; over it they tell each other their addresses in UCX, and
// whether a frame of the other has arrived. If one has not, data goes over the connection. Later
// the end of the connection is the end of the other task, and it carries one byte: the other task
// has received the last frame. Sent bytes are copied into chunks; UCX sends these one by one, and a
// limited number at a time. Frames say how much of the other direction has been taken, so that no
// more than a window waits at a task that receives slowly.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "lapi/stream/connection.h"
#include "lapi/stream/stream.h"
#include "lapi/ucx/ucx_arrivals.h"
#include "lapi/ucx/ucx_worker.h"

namespace shima::lapi {

class UcxStream final : public Stream {
 public:
  UcxStream(UcxWorker& worker, UniqueFd socket, int epoll, int task);
  ~UcxStream() override;

  [[nodiscard]] std::size_t push(std::span<const iovec> pieces, bool is_reply) override;
  void flush() override;
  void flush_messages() override;
  void flush_late() override;
  void flush_waiting() override;
  [[nodiscard]] bool has_gathered() const override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] bool has_closed() const override;
  void look() override;
  // Until the tasks have agreed, and while the last frames may come: also of tasks that serve no
  // messages at present.
  [[nodiscard]] bool needs_clock() const override {
    return (!is(State::open) && !is(State::plain) && !has_ended_) || awaits_last();
  }
  void tick() override;
  [[nodiscard]] std::size_t pull(std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_data() const override;
  [[nodiscard]] pollfd watched() const override { return connection_.watched(); }
  [[nodiscard]] bool has_ended() const override;
  [[nodiscard]] bool is_cut() const override;
  void expect_end() override;
  void note_last() override { connection_.note_last(); }
  [[nodiscard]] bool awaits_last() const override {
    if (is(State::plain)) return connection_.awaits_last();
    return ends_soon_ && !is_cut_ && !is_complete_ && is(State::open) && !has_ended_;
  }
  void close_if_unreachable() override { connection_.close_if_unreachable(); }
  void abort() override;
  void finish() override;
  [[nodiscard]] bool is_kernels() const override { return !is(State::open); }
  [[nodiscard]] bool is_delivered() override;

  // For the worker, which holds its lock.
  [[nodiscard]] bool knows(const UcxFrame& frame) const { return frame.token == own_token_; }
  [[nodiscard]] bool arrive(const UcxFrame& frame, const UcxArrivals::Bytes& bytes);
  void note_failure();
  void note_sending() { sending_count_.fetch_add(1, std::memory_order_seq_cst); }
  void note_sent() { sending_count_.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  enum class State : std::uint8_t {
    greeting,  // waits for the other's address
    trying,    // waits for a frame of the other
    deciding,  // waits for the other's verdict
    open,      // data goes by UCX
    plain,     // data goes over the connection
  };
  [[nodiscard]] bool is(State state) const { return state_.load() == state; }

  // Meeting over the connection.
  void greet();
  void meet();
  void hear_greeting();
  void try_frames();
  void decide(const Status& judgement);
  void look_held();
  [[nodiscard]] bool hear(std::size_t len_bytes);
  [[nodiscard]] Status judge(std::span<const std::byte> address);
  void conclude(bool agreed);
  void tell(const void* bytes, std::size_t len_bytes);
  void look_at_connection();
  void agree_finally();

  // Sending; the caller holds sending_.
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] bool shall_wait(std::size_t len_bytes);
  void send_chunk(bool is_last = false);

  [[nodiscard]] std::uint64_t tell_taken();
  void send_empty();

  void take(std::size_t len_bytes);
  void note_end();

  UcxWorker& worker_;
  Connection connection_;
  std::atomic<State> state_{State::greeting};
  std::uint64_t own_token_ = 0;
  std::uint64_t other_token_ = 0;
  ucp_ep* endpoint_ = nullptr;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> has_ended_{false};

  std::mutex looking_;  // at the connection
  std::vector<std::byte> heard_;
  Clock::time_point next_look_;
  Clock::time_point try_until_;
  std::atomic<bool> ends_soon_{false};  // the other task has ended, and the last frames may come
  Clock::time_point last_until_;
  std::atomic<bool> is_cut_{false};  // they have not come
  std::atomic<bool> is_acknowledged_{false};

  std::mutex sending_;
  std::unique_ptr<UcxChunk> chunk_;  // is being filled
  std::uint64_t next_number_ = 0;
  Clock::time_point last_push_;
  std::atomic<bool> has_gathered_{false};
  std::atomic<int> sending_count_{0};
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::atomic<std::uint64_t> taken_there_{0};  // of those

  std::atomic<std::uint64_t> taken_here_{0};
  std::atomic<std::uint64_t> told_taken_{0};
  std::atomic<bool> has_heard_{false};  // a frame has come

  UcxArrivals arrivals_;  // under the worker's lock
  std::atomic<std::size_t> arrived_bytes_{0};
  std::atomic<bool> is_complete_{false};
};

}  // namespace shima::lapi
