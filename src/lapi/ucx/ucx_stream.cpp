#include "lapi/ucx/ucx_stream.h"

#include "lapi/ucx/ucx_api.h"

#ifdef SHIMA_HAVE_UCX
#include <algorithm>
#include <cstring>
#include <thread>

namespace shima::lapi {
namespace {

// A message that follows another one so soon belongs to a stream of them.
constexpr auto stream_gap = std::chrono::microseconds(3);
constexpr std::size_t most_gathered_piece = std::size_t{8} << 10;
// While UCX has so many frames, small messages are gathered.
constexpr int busy_from = 2;
constexpr int most_sending = 8;
// So much may be on its way to a task, or wait there to be taken; it tells after each quarter.
constexpr std::uint64_t window_bytes = std::uint64_t{4} << 20;

}  // namespace

UcxStream::~UcxStream() {
  worker_.detach(*this, endpoint_);
  const std::lock_guard hold(worker_.lock());
  arrivals_.drop_all([&](void* bytes) { worker_.release(bytes); });
}

bool UcxStream::is_full() const {
  return sending_count_.load() >= most_sending || sent_bytes_ - taken_there_ >= window_bytes;
}

bool UcxStream::has_gathered() const {
  return is(State::plain) ? connection_.has_gathered() : has_gathered_.load();
}

bool UcxStream::has_room() const {
  if (is(State::plain)) return connection_.has_room();
  return is(State::open) && !is_full() && !has_closed();
}

bool UcxStream::has_closed() const {
  return is(State::plain) ? connection_.has_closed() : has_failed_ || has_ended_;
}

// Small messages wait for the next one if they come in a stream, or if UCX is busy.
bool UcxStream::shall_wait(std::size_t len_bytes) {
  const auto now = Clock::now();
  const bool follows = now - std::exchange(last_push_, now) < stream_gap;
  return len_bytes <= most_gathered_piece && (follows || sending_count_.load() >= busy_from);
}

std::size_t UcxStream::push(std::span<const iovec> pieces, bool is_reply) {
  if (is(State::plain)) return connection_.push(pieces, is_reply);
  if (!is(State::open)) return 0;
  const std::lock_guard hold(sending_);
  const bool waits = shall_wait(length_of(pieces));
  std::size_t taken = 0;
  for (const iovec& piece : pieces) {
    for (std::size_t done = 0; done < piece.iov_len;) {
      if (!chunk_ && (is_full() || has_closed())) return taken;
      if (!chunk_) chunk_ = worker_.make_chunk();
      const std::size_t part = std::min(UcxChunk::capacity - chunk_->len, piece.iov_len - done);
      std::memcpy(chunk_->bytes.data() + chunk_->len,
                  static_cast<const std::byte*>(piece.iov_base) + done, part);
      chunk_->len += part;
      done += part;
      taken += part;
      if (chunk_->len == UcxChunk::capacity) send_chunk();
    }
  }
  if (!waits) send_chunk();
  has_gathered_ = chunk_ != nullptr;
  return taken;
}

void UcxStream::send_chunk(bool is_last) {
  if (!chunk_) return;
  chunk_->to = task();
  chunk_->frame = {.token = other_token_,
                   .number = next_number_++,
                   .consumed = tell_taken(),
                   .task = static_cast<std::uint32_t>(worker_.own_task()),
                   .is_last = is_last ? 1U : 0U};
  sent_bytes_ += chunk_->len;
  if (!worker_.send(endpoint_, std::move(chunk_))) has_failed_ = true;
  has_gathered_ = false;
}

// How much has been taken, for a frame that is about to be sent.
std::uint64_t UcxStream::tell_taken() {
  const std::uint64_t taken = taken_here_;
  told_taken_ = taken;
  return taken;
}

// A frame without bytes. Any thread.
void UcxStream::send_empty() {
  auto chunk = worker_.make_chunk();
  chunk->to = task();
  chunk->frame = {.token = other_token_,
                  .number = UcxFrame::no_number,
                  .consumed = tell_taken(),
                  .task = static_cast<std::uint32_t>(worker_.own_task()),
                  .is_last = 0};
  if (!worker_.send(endpoint_, std::move(chunk))) has_failed_ = true;
}

void UcxStream::flush() {
  if (is(State::plain)) return connection_.flush();
  const std::lock_guard hold(sending_);
  if (!is_full()) send_chunk();
}

void UcxStream::flush_messages() {
  if (is(State::plain)) return connection_.flush_messages();
  flush();
}

void UcxStream::flush_late() {
  if (is(State::plain)) return connection_.flush_late();
  flush();
}

void UcxStream::flush_waiting() {
  if (is(State::plain)) return connection_.flush_waiting();
  worker_.progress();
  if (is_full()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  flush();
}

// The last frame is sent even if the stream is full.
void UcxStream::finish() {
  const std::lock_guard look(looking_);
  agree_finally();
  if (!is(State::open)) return connection_.finish();
  const std::lock_guard hold(sending_);
  if (!chunk_) chunk_ = worker_.make_chunk();
  send_chunk(true);
}

bool UcxStream::is_delivered() {
  if (!is(State::open)) return connection_.is_delivered();
  worker_.progress();
  const std::lock_guard hold(looking_);
  look_at_connection();
  return is_acknowledged_ || has_closed();
}

void UcxStream::abort() {
  if (!has_ended_ && !is_complete_) is_cut_ = true;
  connection_.abort();
  note_end();
}

// Nothing is expected from the connection any more, so no thread is woken for it.
void UcxStream::note_end() {
  has_ended_ = true;
  connection_.stop_watching();
}

void UcxStream::note_failure() { has_failed_ = true; }

bool UcxStream::arrive(const UcxFrame& frame, const UcxArrivals::Bytes& bytes) {
  has_heard_ = true;
  taken_there_ = std::max(taken_there_.load(), frame.consumed);
  if (has_ended_ || frame.number == UcxFrame::no_number) return false;
  const bool stays = arrivals_.add(frame, bytes);
  arrived_bytes_.store(arrivals_.ready_bytes(), std::memory_order_seq_cst);
  if (!arrivals_.is_complete() || is_complete_.exchange(true)) return stays;
  tell("", 1);
  if (arrived_bytes_ == 0) note_end();
  return stays;
}

std::size_t UcxStream::pull(std::span<const iovec> pieces) {
  if (is(State::plain)) return connection_.pull(pieces);
  std::size_t taken = 0;
  for (const iovec& piece : pieces) {
    for (std::size_t done = 0; done < piece.iov_len;) {
      std::span<const std::byte> ready;
      {
        const std::lock_guard hold(worker_.lock());
        ready = arrivals_.front();
      }
      if (ready.empty() || has_ended_) return taken;
      const std::size_t part = std::min(ready.size(), piece.iov_len - done);
      std::memcpy(static_cast<std::byte*>(piece.iov_base) + done, ready.data(), part);
      done += part;
      taken += part;
      take(part);
    }
  }
  return taken;
}

void UcxStream::take(std::size_t len_bytes) {
  taken_here_ += len_bytes;
  if (taken_here_ - told_taken_ >= window_bytes / 4 && is(State::open) && !is_complete_)
    send_empty();
  const std::lock_guard hold(worker_.lock());
  arrivals_.take(len_bytes, [&](void* bytes) { worker_.release(bytes); });
  arrived_bytes_.store(arrivals_.ready_bytes(), std::memory_order_seq_cst);
  if ((is_complete_ || is_cut_) && arrived_bytes_ == 0) note_end();
}

bool UcxStream::has_data() const {
  return is(State::plain) ? connection_.has_data() : arrived_bytes_.load() != 0 && !has_ended_;
}

bool UcxStream::is_cut() const {
  return is(State::plain) ? connection_.is_cut() : (is_cut_ && !is_complete_);
}

bool UcxStream::has_ended() const {
  return is(State::plain) ? connection_.has_ended() : has_ended_.load();
}

}  // namespace shima::lapi
#endif
