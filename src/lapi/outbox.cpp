#include "lapi/outbox.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/fault_point.h"

namespace shima::lapi {

bool Sending::push(Transport& way, int task) {
  const std::uint64_t front_bytes = message_head_bytes + header.size();
  while (true) {
    std::array<iovec, 64> parts;
    std::size_t count = 0;
    if (done_bytes < message_head_bytes)
      parts[count++] = {reinterpret_cast<std::byte*>(&head) + done_bytes,
                        message_head_bytes - done_bytes};
    if (done_bytes < front_bytes && !header.empty()) {
      const std::uint64_t at =
          done_bytes < message_head_bytes ? 0 : done_bytes - message_head_bytes;
      parts[count++] = {const_cast<std::byte*>(header.data()) + at, header.size() - at};
    }
    count += data.describe(std::span(parts).subspan(count), UINT64_MAX);
    if (count == 0) return true;
    const std::uint64_t taken = way.push(task, std::span(parts).first(count));
    const std::uint64_t of_front = std::min(taken, front_bytes - done_bytes);
    sent_bytes += taken;
    done_bytes += of_front;
    data.advance_far(taken - of_front);
    if (taken == 0) return false;
  }
}

bool Outbox::send(Transport& way, int task, const Message& head, std::span<const std::byte> header,
                  const Pieces& data, bool copy_data, const Sent& sent) {
  Sending sending{head, header, Walk(data.all())};
  const std::lock_guard hold(mutex_);
  const bool is_sent = waiting_.empty() && sending.push(way, task);
  if (!is_sent) keep(sending, data, copy_data, sent);
  // Counted last: another thread's fence that covers it shall come after it.
  if (is_fenced(head.kind))
    to_fence_.store(to_fence_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return is_sent;
}

void Outbox::keep(Sending sending, const Pieces& data, bool copy_data, const Sent& sent) {
  if (sending.sent_bytes != 0) fault_point(FaultPhase::lapi_part);
  waiting_.push_back({sending, {sending.header.begin(), sending.header.end()}, {}, {}, sent});
  Waiting& kept = waiting_.back();  // a deque does not move it
  kept.sending.header = kept.header;
  if (copy_data) {
    while (!kept.sending.data.at_end()) {
      const Piece piece = kept.sending.data.rest();
      kept.copy.insert(kept.copy.end(), piece.data(), piece.data() + piece.len_bytes);
      kept.sending.data.advance(piece.len_bytes);
    }
    kept.data = Pieces(kept.copy.data(), kept.copy.size());
    kept.sending.data = Walk(kept.data.all());
  } else {
    kept.data = data;
    kept.sending.data = Walk(kept.data.all());
    kept.sending.data.advance_far(sending.sent_bytes - sending.done_bytes);
  }
  length_.store(waiting_.size(), std::memory_order_seq_cst);
}

bool Outbox::flush(Transport& way, int task, std::vector<Sent>& sent) {
  const std::lock_guard hold(mutex_);
  bool moved = false;
  while (!waiting_.empty()) {
    Waiting& first = waiting_.front();
    const std::uint64_t before = first.sending.sent_bytes;
    const bool all_sent = first.sending.push(way, task);
    moved |= first.sending.sent_bytes != before;
    if (!all_sent) return moved;
    sent.push_back(first.sent);
    waiting_.pop_front();
    length_.store(waiting_.size(), std::memory_order_seq_cst);
  }
  return moved;
}

bool Outbox::names(const lapi_cntr_t& counter) {
  const std::lock_guard hold(mutex_);
  return std::ranges::any_of(
      waiting_, [&](const Waiting& waiting) { return waiting.sent.counter == &counter; });
}

std::vector<Sent> Outbox::drop() {
  const std::lock_guard hold(mutex_);
  std::vector<Sent> dropped;
  for (const Waiting& waiting : waiting_) dropped.push_back(waiting.sent);
  waiting_.clear();
  length_.store(0, std::memory_order_seq_cst);
  return dropped;
}

}  // namespace shima::lapi
