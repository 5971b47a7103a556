// Memory of the messages by which a rank answers the others before there is a channel.
//
// A rank that is out of memory must still answer, or the others wait for it. So there is a reserve,
// in four parts: each is enough for 2 500 ranks that find out whether all run under Shima,
// and for 64 that introduce themselves. An open that sends messages takes two at once.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>
#include <utility>

#include "base/clock.h"

namespace shima {

class AnswerMemory {
 public:
  static constexpr std::size_t reserve_bytes = 32 << 10;

  explicit AnswerMemory(std::size_t len_bytes) : len_bytes_(len_bytes) { take(); }
  AnswerMemory(AnswerMemory&& other) noexcept
      : len_bytes_(other.len_bytes_),
        heap_(std::exchange(other.heap_, nullptr)),
        slot_(std::exchange(other.slot_, -1)) {}
  AnswerMemory& operator=(AnswerMemory&&) = delete;
  ~AnswerMemory() {
    ::operator delete(heap_);
    if (slot_ >= 0) reserves[static_cast<std::size_t>(slot_)].taken.clear();
  }

  // Tries once more, if there is none.
  void take() {
    if (data() != nullptr) return;
    heap_ = static_cast<std::byte*>(::operator new(len_bytes_, std::nothrow));
    for (std::size_t i = 0; data() == nullptr && i < reserves.size(); ++i)
      if (len_bytes_ <= reserve_bytes && !reserves[i].taken.test_and_set())
        slot_ = static_cast<int>(i);
  }
  // The same for a while: the reserve is for a few threads at once.
  [[nodiscard]] bool take_within(std::chrono::seconds patience) {
    const auto until = Clock::now() + patience;
    while (data() == nullptr && Clock::now() < until) {
      sched_yield();
      take();
    }
    return data() != nullptr;
  }
  // Null: there is none.
  [[nodiscard]] std::byte* data() const {
    return slot_ < 0 ? heap_ : reserves[static_cast<std::size_t>(slot_)].bytes.data();
  }
  // Never frees it: an MPI may still write there.
  void keep() {
    heap_ = nullptr;
    slot_ = -1;
  }

 private:
  struct Reserve {
    std::atomic_flag taken;
    alignas(8) std::array<std::byte, reserve_bytes> bytes;
  };
  static inline std::array<Reserve, 4> reserves{};

  std::size_t len_bytes_;
  std::byte* heap_ = nullptr;
  int slot_ = -1;
};

}  // namespace shima
