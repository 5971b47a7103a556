// What the collective calls on a file have cost, and whether another strategy is worth a trial.
//
// Each member adds the same durations in the same order (the digest joins them by maximum), so that
// all hold the same history and decide alike. Calls of one class have about the same size and
// shape; for each class and strategy the history keeps the cost of a byte in the last few calls.
// Trials take at most one twentieth of the time of all calls on the file; the reserve for a
// strategy that was never tried is four times the cost of the usual one. It allocates nothing, so
// that it cannot fail on one member alone. Pure: it has no clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/direction.h"
#include "collective/plan/digest.h"
#include "collective/plan/strategy.h"

namespace shima {

// Calls whose bytes cost about the same.
struct CallClass {
  Direction direction = Direction::write;
  bool cached = false;
  std::uint8_t len_log2 = 0;
  std::uint8_t piece_log2 = 0;

  friend bool operator==(const CallClass&, const CallClass&) = default;
};

[[nodiscard]] CallClass class_of(const Digest& digest, Direction direction);

class History {
 public:
  // A call begins: its class, size and strategy, and whether this is a trial.
  void begin(const Digest& digest, Direction direction, Strategy strategy, bool is_trial);
  // It took so long on the slowest member.
  void end(std::uint64_t duration_ns);
  // It failed, so that its duration says nothing.
  void forget() { current_.reset(); }

  // The alternative that is clearly cheaper than `usual`, if there is one.
  [[nodiscard]] std::optional<Strategy> cheaper(const CallClass& calls, Strategy usual,
                                                std::span<const Strategy> alternatives) const;
  // The alternative to try in the next call, of `len_bytes`, if the budget allows one.
  [[nodiscard]] std::optional<Strategy> trial(const CallClass& calls, std::uint64_t len_bytes,
                                              Strategy usual,
                                              std::span<const Strategy> alternatives) const;

 private:
  static constexpr std::size_t most_classes = 16;  // later ones are not kept
  // The cost of the last calls by one strategy, in ns for 1024 bytes.
  struct Costs {
    static constexpr std::size_t kept = 5;
    std::array<std::uint64_t, kept> last{};
    std::uint64_t count = 0;

    void add(std::uint64_t cost) { last[count++ % kept] = cost; }
    [[nodiscard]] std::uint64_t median() const;
  };
  struct ClassCosts {
    CallClass calls;
    std::array<Costs, strategy_count> by_strategy;
  };
  struct Call {
    CallClass calls;
    std::uint64_t len_bytes = 0;
    Strategy strategy = Strategy::independent;
    bool is_trial = false;
  };
  [[nodiscard]] const Costs* costs_of(const CallClass& calls, Strategy strategy) const;
  [[nodiscard]] ClassCosts* class_to_add_to(const CallClass& calls);

  std::array<ClassCosts, most_classes> classes_;
  std::size_t class_count_ = 0;
  std::optional<Call> current_;
  std::uint64_t all_ns_ = 0;
  std::uint64_t trials_ns_ = 0;
};

}  // namespace shima
