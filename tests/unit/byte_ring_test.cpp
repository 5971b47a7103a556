// The stream between two tasks of a node: random pieces against a sequential model, and by two
// threads at once.
#include "lapi/way/byte_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace shima::lapi {
namespace {

constexpr std::size_t most_pieces = 4;

class Random {
 public:
  explicit Random(unsigned seed) : generator_(seed) {}
  std::size_t below(std::size_t limit) { return generator_() % limit; }

 private:
  std::mt19937 generator_;
};

// Cuts the bytes into some pieces, of which some are empty.
std::vector<iovec> cut(std::span<std::byte> bytes, Random& random) {
  std::vector<iovec> pieces;
  while (pieces.size() + 1 < most_pieces) {
    const std::size_t part = random.below(bytes.size() + 1);
    pieces.push_back({bytes.data(), part});
    bytes = bytes.subspan(part);
  }
  pieces.push_back({bytes.data(), bytes.size()});
  return pieces;
}

std::size_t some_length(Random& random) {
  constexpr std::size_t limits[] = {2, 61, 200, 5000, 2 * ByteRing::capacity_bytes};
  return random.below(limits[random.below(std::size(limits))]);
}

TEST(ByteRing, IsAStream) {
  const auto ring = std::make_unique<ByteRing>();
  Random random(1);
  std::deque<std::byte> model;
  unsigned next = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(some_length(random));
    if (random.below(2) == 0) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(next++);
      const bool had_room = ring->has_room();
      const std::size_t sent = ring->write(cut(bytes, random));
      ASSERT_TRUE(sent > 0 || bytes.empty() || !had_room);
      next -= static_cast<unsigned>(bytes.size() - sent);
      model.insert(model.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(sent));
    } else {
      const std::size_t taken = ring->read(cut(bytes, random));
      ASSERT_EQ(taken, std::min(bytes.size(), model.size()));
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken),
                             model.begin()));
      model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(taken));
    }
    ASSERT_EQ(ring->has_data(), !model.empty());
  }
}

TEST(ByteRing, ASmallMessageTakesALine) {
  const auto ring = std::make_unique<ByteRing>();
  std::vector<std::byte> message(ByteRing::line_bytes);
  const iovec all{message.data(), message.size()};
  std::size_t sent = 0;
  while (ring->write(std::span(&all, 1)) == message.size()) ++sent;
  EXPECT_EQ(sent, ByteRing::lines);
  EXPECT_FALSE(ring->has_room());
  EXPECT_EQ(ring->read(std::span(&all, 1)), message.size());
  EXPECT_TRUE(ring->ask_for_room());
  EXPECT_TRUE(ring->take_request());
  EXPECT_FALSE(ring->take_request());
}

TEST(ByteRing, CarriesBytesBetweenThreads) {
  const auto ring = std::make_unique<ByteRing>();
  constexpr std::size_t total = 8 << 20;
  std::thread writer([&] {
    Random random(2);
    std::vector<std::byte> bytes(100000);
    for (std::size_t done = 0; done < total;) {
      const std::size_t len = std::min(total - done, some_length(random) % bytes.size());
      for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<std::byte>((done + i) % 251);
      const std::size_t sent = ring->write(cut(std::span(bytes).first(len), random));
      if (sent == 0) std::this_thread::yield();
      done += sent;
    }
  });
  Random random(3);
  std::vector<std::byte> bytes(100000);
  std::size_t wrong = 0;
  for (std::size_t done = 0; done < total;) {
    const std::size_t len = some_length(random) % bytes.size();
    const std::size_t taken = ring->read(cut(std::span(bytes).first(len), random));
    for (std::size_t i = 0; i < taken; ++i)
      wrong += bytes[i] != static_cast<std::byte>((done + i) % 251);
    if (taken == 0) std::this_thread::yield();
    done += taken;
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace shima::lapi
