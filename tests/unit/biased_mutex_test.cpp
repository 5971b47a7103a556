// A biased mutex is held by one thread at a time, also at the moment in which its bias is revoked.
#include "base/process/biased_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace shima {
namespace {

constexpr int enough_to_be_biased = 200;

// Its members become different if two threads change it at the same time.
struct Guarded {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  void grow() {
    ++first;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    ++second;
  }
};

template <class Mutex>
void count_turns(Mutex& mutex, int turns) {
  for (int i = 0; i < turns; ++i) {
    mutex.lock();
    mutex.unlock();
  }
}

// With pauses, so that the mutex is biased again and again.
template <class Mutex>
void take_turns(Mutex& mutex, Guarded& guarded, bool tries, int turns, int pause) {
  for (int i = 0; i < turns; ++i) {
    if (tries) {
      while (!mutex.try_lock()) std::this_thread::yield();
    } else {
      mutex.lock();
    }
    guarded.grow();
    mutex.unlock();
    if (pause > 0 && i % pause == 0) std::this_thread::yield();
  }
}

template <class Mutex>
void exclude_others() {
  constexpr int rounds = 100;
  constexpr int turns_of_creator = 5000;
  constexpr int turns_of_others = 50;
  for (int round = 0; round < rounds; ++round) {
    Mutex mutex;
    Guarded guarded;
    count_turns(mutex, enough_to_be_biased);
    std::vector<std::thread> others;
    for (const bool tries : {false, true, false})
      others.emplace_back([&, tries] { take_turns(mutex, guarded, tries, turns_of_others, 1); });
    take_turns(mutex, guarded, round % 2 == 0, turns_of_creator, 0);
    for (std::thread& other : others) other.join();
    const std::uint64_t expected = turns_of_creator + 3 * turns_of_others;
    ASSERT_EQ(guarded.first, expected);
    ASSERT_EQ(guarded.second, expected);
  }
}

TEST(BiasedMutex, excludes_others) { exclude_others<BiasedMutex>(); }

TEST(BiasedMutex, excludes_others_if_it_is_recursive) { exclude_others<RecursiveBiasedMutex>(); }

// Whether another thread can take it at once; that thread unlocks it.
template <class Mutex>
bool is_free_for_another(Mutex& mutex) {
  bool is_free = false;
  std::thread([&] {
    is_free = mutex.try_lock();
    if (is_free) mutex.unlock();
  }).join();
  return is_free;
}

// Each round revokes the bias of a new mutex once, at another moment of the creator's turns.
TEST(BiasedMutex, excludes_another_at_the_moment_of_the_revocation) {
  constexpr int rounds = 10'000;
  struct Round {
    BiasedMutex mutex;
    Guarded guarded;
  };
  std::atomic<Round*> open{nullptr};
  std::atomic<int> ended{0};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    while (!ends) {
      Round* const round = open.exchange(nullptr);
      if (round == nullptr) {
        std::this_thread::yield();
        continue;
      }
      round->mutex.lock();
      round->guarded.grow();
      round->mutex.unlock();
      ++ended;
    }
  });
  int spoilt = 0;
  for (int i = 0; i < rounds; ++i) {
    Round round;
    count_turns(round.mutex, enough_to_be_biased);
    EXPECT_EQ(round.mutex.is_biased(), can_order_threads());
    open = &round;
    std::uint64_t turns = 0;
    for (; round.mutex.is_biased() && turns < 20'000; ++turns) {
      round.mutex.lock();
      round.guarded.grow();
      round.mutex.unlock();
    }
    while (ended <= i) std::this_thread::yield();
    spoilt += round.guarded.first != turns + 1 || round.guarded.second != turns + 1 ? 1 : 0;
  }
  ends = true;
  other.join();
  EXPECT_EQ(spoilt, 0);
}

TEST(BiasedMutex, is_biased_until_another_takes_it) {
  if (!can_order_threads()) GTEST_SKIP() << "no membarrier(2)";
  BiasedMutex mutex;
  EXPECT_FALSE(mutex.is_biased());
  count_turns(mutex, enough_to_be_biased);
  EXPECT_TRUE(mutex.is_biased());
  std::thread([&] { count_turns(mutex, enough_to_be_biased); }).join();
  EXPECT_FALSE(mutex.is_biased());
  count_turns(mutex, enough_to_be_biased);
  EXPECT_TRUE(mutex.is_biased());
}

TEST(BiasedMutex, is_not_given_to_another_while_the_creator_holds_it_by_the_bias) {
  BiasedMutex mutex;
  for (int again = 0; again < 10; ++again) {
    count_turns(mutex, enough_to_be_biased << again);
    mutex.lock();
    EXPECT_FALSE(is_free_for_another(mutex));
    EXPECT_FALSE(is_free_for_another(mutex));  // the bias is revoked
    mutex.unlock();
    EXPECT_TRUE(is_free_for_another(mutex));
  }
}

TEST(BiasedMutex, wakes_a_thread_that_waits_for_the_creator) {
  BiasedMutex mutex;
  for (int again = 0; again < 5; ++again) {
    count_turns(mutex, enough_to_be_biased << again);
    mutex.lock();
    std::atomic<bool> has_got_it{false};
    std::thread other([&] {
      mutex.lock();
      has_got_it = true;
      mutex.unlock();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(has_got_it);
    mutex.unlock();
    other.join();
    EXPECT_TRUE(has_got_it);
  }
}

TEST(BiasedMutex, may_be_locked_again_by_its_owner_if_it_is_recursive) {
  RecursiveBiasedMutex mutex;
  for (int again = 0; again < 3; ++again) {
    mutex.lock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.lock();
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(is_free_for_another(mutex));
      mutex.unlock();
    }
    EXPECT_TRUE(is_free_for_another(mutex));
    count_turns(mutex, enough_to_be_biased << again);
  }
}

}  // namespace
}  // namespace shima
