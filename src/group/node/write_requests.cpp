#include "group/node/write_requests.h"

#include <algorithm>

#include "base/fault_point.h"

namespace shima {

bool WriteRequests::post(std::span<const std::byte> message) {
  if (message.size() > WriteRequest::most_bytes || leader_lost_) return false;
  if (!caught([this] { return segment_.open_members(slot_); })) return false;
  WriteRequest& mine = request(index());
  std::ranges::copy(message, mine.message.data());
  mine.len_bytes = message.size();
  mine.state.store(WriteRequest::posted, std::memory_order_release);
  fault_point(FaultPhase::write_request);
  return true;
}

bool WriteRequests::start_leading() {
  std::uint32_t no_leader = 0;
  return slot_->led.compare_exchange_strong(no_leader, static_cast<std::uint32_t>(index()) + 1,
                                            std::memory_order_acquire);
}

void WriteRequests::stop_leading() {
  slot_->led.store(0, std::memory_order_release);
  slot_->write_requests.post();
}

void WriteRequests::take_back() {
  request(index()).state.store(WriteRequest::none, std::memory_order_release);
  stop_leading();
}

Status WriteRequests::check_leader() const {
  const std::uint32_t leader = slot_->led.load(std::memory_order_relaxed);
  if (leader == 0) return {};
  const Status alive = segment_.check_peer(static_cast<int>(leader) - 1);
  // A leader that stopped leading before it exited may have a successor, which may have taken the
  // request of this member.
  return alive || slot_->led.load() == leader ? alive : Status{};
}

WriteRequest::State WriteRequests::wait() {
  WriteRequest& mine = request(index());
  const auto over = [&] {
    const std::uint32_t state = mine.state.load(std::memory_order_acquire);
    return state == WriteRequest::done || state == WriteRequest::failed;
  };
  bool leading = false;
  const Status waited = wait_until(slot_->write_requests, hooks_, [&] {
    if (over()) return true;
    leading = start_leading();
    return leading;
  });
  leader_lost_ = !waited;
  if (leader_lost_)
    return over() ? static_cast<WriteRequest::State>(mine.state.load()) : WriteRequest::failed;
  if (leading && over()) stop_leading();
  return over() ? static_cast<WriteRequest::State>(mine.state.exchange(WriteRequest::none))
                : WriteRequest::posted;
}

std::optional<std::span<const std::byte>> WriteRequests::take(int member) {
  WriteRequest& asked = request(member);
  std::uint32_t state = WriteRequest::posted;
  if (!asked.state.compare_exchange_strong(state, WriteRequest::taken, std::memory_order_acquire))
    return std::nullopt;
  return std::span<const std::byte>(asked.message).first(asked.len_bytes);
}

void WriteRequests::finish(int member, bool well) {
  request(member).state.store(well ? WriteRequest::done : WriteRequest::failed,
                              std::memory_order_release);
  slot_->write_requests.post();
}

}  // namespace shima
