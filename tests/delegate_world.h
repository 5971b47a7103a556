// A delegatee and its requesters on a mapping that they share, as threads or as processes: what the
// tests of src/delegate have in common.
//
// The delegatee handles three operations whose answers a model can foretell, so that every answer
// can be checked.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "delegate/delegatee.h"
#include "delegate/requester.h"

namespace shima::delegate {

inline constexpr int operation_sum = first_own_operation;           // value: a sum of the payload
inline constexpr int operation_scramble = first_own_operation + 1;  // the payload, changed
inline constexpr int operation_fill = first_own_operation + 2;      // some bytes of it, made

inline std::int64_t sum_of(std::span<const std::byte> data) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i)
    sum += static_cast<std::int64_t>(i + 1) * static_cast<std::int64_t>(data[i]);
  return sum;
}

inline void scramble(std::span<std::byte> data, std::int64_t key) {
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] ^= static_cast<std::byte>(static_cast<std::size_t>(key) + i * 7);
}

inline void fill(std::span<std::byte> data, std::int64_t key) {
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(static_cast<std::size_t>(key) * 31 + i * 3);
}

inline void offer_model(Delegatee& delegatee) {
  const auto offer = [&](int operation, Handler handler) {
    if (!delegatee.offer(operation, std::move(handler))) std::abort();
  };
  offer(operation_sum, [](const Job& job) { return sum_of(job.payload); });
  offer(operation_scramble, [](const Job& job) {
    scramble(job.payload, job.arguments[0]);
    return job.arguments[0];
  });
  offer(operation_fill, [](const Job& job) {
    fill(job.payload.first(static_cast<std::size_t>(job.arguments[1])), job.arguments[0]);
    return job.arguments[1];
  });
}

// Zeroed memory that children share at the same address: a desk, then an arena.
class World {
 public:
  static constexpr std::size_t arena_bytes = 1 << 20;

  explicit World(std::uint32_t seats)
      : desk_bytes_((Delegatee::memory_needed(seats) + 4095) / 4096 * 4096) {
    void* const at = ::mmap(nullptr, desk_bytes_ + arena_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no shared memory");
    memory_ = {static_cast<std::byte*>(at), desk_bytes_ + arena_bytes};
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { ::munmap(memory_.data(), memory_.size()); }

  [[nodiscard]] std::span<std::byte> desk() const { return memory_.first(desk_bytes_); }
  [[nodiscard]] std::span<std::byte> arena() const { return memory_.subspan(desk_bytes_); }
  [[nodiscard]] Reachable reachable() const {
    const auto begin = reinterpret_cast<std::uintptr_t>(arena().data());
    return {begin, begin + arena().size()};
  }

 private:
  std::size_t desk_bytes_;
  std::span<std::byte> memory_;
};

// Random requests in bursts, each with memory of its own, and what they are to answer.
class Asker {
 public:
  // `area`: memory that nobody else uses, in reach of the delegatee or not.
  Asker(Requester& requester, std::span<std::byte> area, std::uint32_t seed)
      : requester_(requester), area_(area), dice_(seed) {}

  // The error of the first request that failed; an answer that is wrong is an `internal` one.
  [[nodiscard]] Status burst() {
    const std::size_t count = draw(1, ring_depth);
    const std::size_t share = area_.size() / ring_depth;
    std::vector<Asked> asked(count);
    for (std::size_t i = 0; i < count; ++i)
      SHIMA_TRY(
          ask(asked[i], area_.subspan(i * share, draw(0, 3) == 0 ? draw(0, share) : draw(0, 300))));
    // Taken in another order than asked, as its caller likes.
    std::ranges::shuffle(asked, dice_);
    for (const Asked& one : asked) SHIMA_TRY(take(one));
    return {};
  }

 private:
  struct Asked {
    Ticket ticket = 0;
    std::span<std::byte> data;
    std::vector<std::byte> wanted;
    std::int64_t value = 0;
  };

  std::size_t draw(std::size_t least, std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(least, most)(dice_);
  }

  [[nodiscard]] Status ask(Asked& one, std::span<std::byte> data) {
    const auto key = static_cast<std::int64_t>(draw(0, 1000));
    const int operation = operation_sum + static_cast<int>(draw(0, 2));
    Request request{operation, {key, 0, 0}, data, Direction::to_delegatee};
    fill(data, key + 5);
    one.data = data;
    one.wanted.assign(data.begin(), data.end());
    one.value = sum_of(data);
    if (operation == operation_scramble) {
      request.direction = Direction::both;
      scramble(one.wanted, key);
      one.value = key;
    } else if (operation == operation_fill) {
      const std::size_t some = draw(0, data.size());
      request.direction = Direction::from_delegatee;
      request.arguments[1] = one.value = static_cast<std::int64_t>(some);
      fill(std::span(one.wanted).first(some), key);
    }
    SHIMA_TRY_ASSIGN(one.ticket, requester_.start(request));
    return {};
  }

  [[nodiscard]] Status take(const Asked& one) {
    SHIMA_TRY_ASSIGN(const std::int64_t value, requester_.wait(one.ticket));
    if (value != one.value) return fail(Code::internal, "another value than the model's");
    if (!std::ranges::equal(one.data, one.wanted))
      return fail(Code::internal, "other bytes than the model's");
    return {};
  }

  Requester& requester_;
  std::span<std::byte> area_;
  std::mt19937 dice_;
};

}  // namespace shima::delegate
