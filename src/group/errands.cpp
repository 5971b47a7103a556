#include "group/errands.h"

#include <algorithm>

#include "base/fault_point.h"

namespace shima {

bool Errands::post(std::span<const std::byte> letter) {
  if (letter.size() > Mailbox::inline_bytes || leader_lost_) return false;
  Errand& mine = errand(index());
  std::ranges::copy(letter, mine.letter.data.data());
  mine.letter.len_bytes = letter.size();
  mine.state.store(Errand::posted, std::memory_order_release);
  fault_point(FaultPhase::errand);
  return true;
}

bool Errands::start_leading() {
  std::uint32_t nobody = 0;
  return slot_->led.compare_exchange_strong(nobody, static_cast<std::uint32_t>(index()) + 1,
                                            std::memory_order_acquire);
}

void Errands::stop_leading() {
  slot_->led.store(0, std::memory_order_release);
  slot_->errands.post();
}

void Errands::take_back() {
  errand(index()).state.store(Errand::none, std::memory_order_release);
  stop_leading();
}

Status Errands::check_leader() const {
  const std::uint32_t leader = slot_->led.load(std::memory_order_relaxed);
  return leader == 0 ? Status{} : segment_.check_peer(static_cast<int>(leader) - 1);
}

Errand::State Errands::wait() {
  Errand& mine = errand(index());
  const auto over = [&] {
    const std::uint32_t state = mine.state.load(std::memory_order_acquire);
    return state == Errand::done || state == Errand::failed;
  };
  bool leading = false;
  const Status waited = wait_until(slot_->errands, hooks_, [&] {
    if (over()) return true;
    leading = start_leading();
    return leading;
  });
  leader_lost_ = !waited;
  if (leader_lost_) return over() ? static_cast<Errand::State>(mine.state.load()) : Errand::failed;
  if (leading && over()) stop_leading();
  return over() ? static_cast<Errand::State>(mine.state.exchange(Errand::none)) : Errand::posted;
}

std::optional<std::span<const std::byte>> Errands::take(int member) {
  Errand& asked = errand(member);
  std::uint32_t state = Errand::posted;
  if (!asked.state.compare_exchange_strong(state, Errand::taken, std::memory_order_acquire))
    return std::nullopt;
  return std::span<const std::byte>(asked.letter.data).first(asked.letter.len_bytes);
}

void Errands::finish(int member, bool well) {
  errand(member).state.store(well ? Errand::done : Errand::failed, std::memory_order_release);
  slot_->errands.post();
}

}  // namespace shima
