#include "collective/plan/history.h"

#include <algorithm>
#include <bit>

namespace shima {
namespace {

constexpr std::uint64_t budget_divisor = 20;  // trials take a twentieth of the time
constexpr std::uint64_t usual_calls = 32;     // of a class, before the first trial
constexpr std::uint64_t trial_calls = 3;      // enough to compare
constexpr std::uint64_t untried_factor = 4;   // reserved for a strategy that was never tried
constexpr std::uint64_t hopeless_factor = 2;  // a strategy this much dearer is not tried again

}  // namespace

CallClass class_of(const Digest& digest, Direction direction) {
  const std::uint64_t piece = digest.len_bytes / std::max<std::uint64_t>(digest.file_pieces, 1);
  return {.direction = direction,
          .cached = direction == Direction::read && digest.cached != 0,
          .len_log2 = static_cast<std::uint8_t>(std::bit_width(digest.len_bytes)),
          .piece_log2 = static_cast<std::uint8_t>(std::bit_width(piece))};
}

std::uint64_t History::Costs::median() const {
  auto sorted = last;
  const std::size_t size = std::min<std::uint64_t>(count, kept);
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(size));
  return size == 0 ? 0 : sorted[size / 2];
}

const History::Costs* History::costs_of(const CallClass& calls, Strategy strategy) const {
  const std::span known(classes_.begin(), class_count_);
  const auto found = std::ranges::find(known, calls, &ClassCosts::calls);
  return found == known.end() ? nullptr : &found->by_strategy[static_cast<std::size_t>(strategy)];
}

History::ClassCosts* History::class_to_add_to(const CallClass& calls) {
  const std::span known(classes_.begin(), class_count_);
  if (const auto found = std::ranges::find(known, calls, &ClassCosts::calls); found != known.end())
    return &*found;
  if (class_count_ == most_classes) return nullptr;
  classes_[class_count_].calls = calls;
  return &classes_[class_count_++];
}

void History::begin(const Digest& digest, Direction direction, Strategy strategy, bool is_trial) {
  current_ = Call{class_of(digest, direction), digest.len_bytes, strategy, is_trial};
}

void History::end(std::uint64_t duration_ns) {
  if (!current_) return;
  const Call call = *current_;
  current_.reset();
  all_ns_ += duration_ns;
  if (call.is_trial) trials_ns_ += duration_ns;
  if (call.len_bytes == 0) return;
  ClassCosts* const costs = class_to_add_to(call.calls);
  if (costs == nullptr) return;
  costs->by_strategy[static_cast<std::size_t>(call.strategy)].add(duration_ns * 1024 /
                                                                  call.len_bytes);
}

std::optional<Strategy> History::cheaper(const CallClass& calls, Strategy usual,
                                         std::span<const Strategy> alternatives) const {
  const Costs* const known = costs_of(calls, usual);
  if (known == nullptr) return {};
  std::optional<Strategy> best;
  std::uint64_t limit = known->median() / 10 * 9;
  for (const Strategy alternative : alternatives) {
    const Costs& costs = *costs_of(calls, alternative);
    if (costs.count < trial_calls || costs.median() > limit) continue;
    best = alternative;
    limit = costs.median();
  }
  return best;
}

std::optional<Strategy> History::trial(const CallClass& calls, std::uint64_t len_bytes,
                                       Strategy usual,
                                       std::span<const Strategy> alternatives) const {
  const Costs* const known = costs_of(calls, usual);
  if (known == nullptr || known->count < usual_calls) return {};
  for (const Strategy alternative : alternatives) {
    const Costs& costs = *costs_of(calls, alternative);
    const bool hopeless = costs.count > 0 && costs.median() > hopeless_factor * known->median();
    if (costs.count >= trial_calls || hopeless) continue;
    const std::uint64_t cost =
        costs.count == 0 ? untried_factor * known->median() : costs.median() / 4 * 5;
    const std::uint64_t reserved_ns = cost * len_bytes / 1024;
    if (trials_ns_ + reserved_ns > all_ns_ / budget_divisor) return {};
    return alternative;
  }
  return {};
}

}  // namespace shima
