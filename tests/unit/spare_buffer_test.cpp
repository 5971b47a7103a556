#include "independent/spare_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace shima {
namespace {

TEST(SpareBuffer, IsKeptBetweenLoans) {
  SpareBuffer spare;
  const std::byte* const first = SpareBuffer::take(&spare, SpareBuffer::least_bytes).get();
  // Memory that was given back would be found here.
  const PageBytes other = make_page_bytes(SpareBuffer::most_bytes);
  EXPECT_EQ(SpareBuffer::take(&spare, SpareBuffer::most_bytes).get(), first);
}

TEST(SpareBuffer, IsNeverOnLoanTwice) {
  SpareBuffer spare;
  const auto first = SpareBuffer::take(&spare, SpareBuffer::most_bytes);
  const auto second = SpareBuffer::take(&spare, SpareBuffer::most_bytes);
  std::memset(first.get(), 1, SpareBuffer::most_bytes);
  std::memset(second.get(), 2, SpareBuffer::most_bytes);
  EXPECT_EQ(first.get()[SpareBuffer::most_bytes - 1], std::byte{1});
}

TEST(SpareBuffer, LendsSmallAndLargeOnes) {
  constexpr std::size_t small_bytes = 100, large_bytes = 4 * SpareBuffer::most_bytes;
  SpareBuffer spare;
  for (const std::size_t len_bytes : {large_bytes, small_bytes, SpareBuffer::most_bytes})
    std::memset(SpareBuffer::take(&spare, len_bytes).get(), 1, len_bytes);
  std::memset(SpareBuffer::take(nullptr, large_bytes).get(), 1, large_bytes);
}

TEST(SpareBuffer, IsSharedByThreads) {
  constexpr std::size_t len_bytes = SpareBuffer::least_bytes;
  constexpr int thread_count = 4, rounds = 200;
  SpareBuffer spare;
  std::atomic<int> disturbed = 0;
  const auto use = [&](int value) {
    for (int round = 0; round < rounds; ++round) {
      const auto loan = SpareBuffer::take(&spare, len_bytes);
      std::memset(loan.get(), value, len_bytes);
      disturbed += std::any_of(loan.get(), loan.get() + len_bytes,
                               [&](std::byte found) { return found != std::byte(value); });
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back(use, i);
  threads.clear();
  EXPECT_EQ(disturbed, 0);
}

}  // namespace
}  // namespace shima
