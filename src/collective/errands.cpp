#include "collective/errands.h"

#include <algorithm>

namespace shima {

bool Errands::post(std::span<const std::byte> letter) {
  if (letter.size() > Mailbox::inline_bytes) return false;
  Errand& mine = errand(index());
  std::ranges::copy(letter, mine.letter.data.data());
  mine.letter.len_bytes = letter.size();
  mine.state.store(Errand::posted, std::memory_order_release);
  return true;
}

bool Errands::start_leading() {
  std::uint32_t nobody = 0;
  return slot_->led.compare_exchange_strong(nobody, 1, std::memory_order_acquire);
}

void Errands::stop_leading() {
  slot_->led.store(0, std::memory_order_release);
  slot_->errands.post();
}

Result<Errand::State> Errands::wait() {
  Errand& mine = errand(index());
  const auto over = [&] {
    const std::uint32_t state = mine.state.load(std::memory_order_acquire);
    return state == Errand::done || state == Errand::failed;
  };
  bool leading = false;
  SHIMA_TRY(wait_until(slot_->errands, hooks_, [&] {
    if (over()) return true;
    leading = start_leading();
    return leading;
  }));
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
