// The bytes of frames that arrive in any order are read in the order in which they were sent, and
// what stays in foreign memory is released once.
#include "lapi/ucx/ucx_arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace shima::lapi {
namespace {

class Frames {
 public:
  explicit Frames(unsigned seed) : random_(seed) {
    for (int i = 0; i < count; ++i) {
      const std::size_t most = random_() % 4 == 0 ? 9000 : 80;
      std::vector<std::byte> bytes(i + 1 == count ? 0 : random_() % most);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
      sent_.insert(sent_.end(), bytes.begin(), bytes.end());
      frames_.push_back(std::move(bytes));
      order_.push_back(static_cast<std::size_t>(i));
    }
    // Each frame overtakes a few others at most.
    for (std::size_t i = 0; i + 4 < order_.size(); i += 2)
      std::shuffle(order_.begin() + static_cast<std::ptrdiff_t>(i),
                   order_.begin() + static_cast<std::ptrdiff_t>(i + 4), random_);
  }

  void arrive_and_read() {
    for (const std::size_t number : order_) {
      deliver(number);
      if (random_() % 3 == 0) read();
    }
    read();
  }
  void check() {
    EXPECT_EQ(got_, sent_);
    EXPECT_TRUE(arrivals_.is_complete());
    EXPECT_EQ(arrivals_.ready_bytes(), 0U);
    EXPECT_EQ(released_.size(), staying_.size());
    std::ranges::sort(released_);
    std::ranges::sort(staying_);
    EXPECT_EQ(released_, staying_);
  }

 private:
  static constexpr int count = 300;

  void deliver(std::size_t number) {
    std::vector<std::byte>& bytes = frames_[number];
    const bool may_stay = random_() % 2 == 0;
    const UcxFrame frame{.number = number, .is_last = number + 1 == frames_.size() ? 1U : 0U};
    if (arrivals_.add(frame, {bytes.data(), bytes.size(), may_stay})) {
      EXPECT_TRUE(may_stay);
      staying_.push_back(bytes.data());
    } else {
      std::ranges::fill(bytes, std::byte{0xee});  // UCX takes its memory back
    }
    // A second frame with a number that has been seen is dropped.
    if (number == 0) {
      EXPECT_FALSE(arrivals_.add(frame, {bytes.data(), bytes.size(), true}));
    }
  }
  void read() {
    for (auto ready = arrivals_.front(); !ready.empty(); ready = arrivals_.front()) {
      const std::size_t part = std::min<std::size_t>(ready.size(), 1 + random_() % 700);
      got_.insert(got_.end(), ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(part));
      arrivals_.take(part,
                     [&](void* bytes) { released_.push_back(static_cast<std::byte*>(bytes)); });
    }
  }

  std::mt19937 random_;
  std::vector<std::vector<std::byte>> frames_;
  std::vector<std::size_t> order_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> got_;
  std::vector<std::byte*> staying_;
  std::vector<std::byte*> released_;
  UcxArrivals arrivals_;
};

TEST(UcxArrivals, AreReadInOrder) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Frames frames(seed);
    frames.arrive_and_read();
    frames.check();
  }
}

}  // namespace
}  // namespace shima::lapi
