#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/pieces.h"
#include "device/staged_memory.h"

namespace shima {
namespace {

// Moves nothing before the mark is waited for.
class LateQueue final : public CopyQueue {
 public:
  LateQueue(std::uint64_t buffer_bytes, int& open) : buffer_(buffer_bytes), open_(open) { ++open_; }
  ~LateQueue() override {
    EXPECT_TRUE(pending_.empty()) << "copies that nobody waited for";
    --open_;
  }

  std::span<std::byte> buffer() const override {
    return {const_cast<std::byte*>(buffer_.data()), buffer_.size()};
  }
  Status start(std::span<const StripPair> pairs) override {
    pending_.insert(pending_.end(), pairs.begin(), pairs.end());
    return {};
  }
  Status set_mark(int mark) override {
    marks_[mark] = done_ + pending_.size();
    return {};
  }
  Status wait_for(int mark) override {
    for (; done_ < marks_[mark]; ++done_) {
      copy_strips(0, 0, pending_.front());
      pending_.erase(pending_.begin());
    }
    return {};
  }

 private:
  std::vector<std::byte> buffer_;
  int& open_;
  std::vector<StripPair> pending_;
  std::size_t done_ = 0;
  std::size_t marks_[mark_count] = {};
};

class LateDriver final : public Driver {
 public:
  std::optional<DevicePlace> find(std::uintptr_t) override { return DevicePlace{this}; }
  Result<std::unique_ptr<CopyQueue>> open_queue(const DevicePlace&,
                                                std::uint64_t buffer_bytes) override {
    ++made;
    return std::make_unique<LateQueue>(buffer_bytes, open);
  }
  int open = 0;
  int made = 0;
};

std::byte byte_at(std::uint64_t i) { return static_cast<std::byte>(i * 131 >> 3); }

// Every third byte of separate blocks.
struct Memory {
  std::vector<std::byte> bytes = std::vector<std::byte>(200000, std::byte{0x5a});
  Pattern pattern = Pattern::strided(120, 1500, Pattern::strided(300, 3, Pattern::contiguous(1)));
  [[nodiscard]] Slice slice() const {
    return {.pattern = pattern,
            .base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(bytes.data())),
            .len_bytes = pattern.len_bytes()};
  }
  [[nodiscard]] std::size_t place_of(std::uint64_t i) const { return i / 300 * 1500 + i % 300 * 3; }
};

TEST(StagedMemory, ReadsPiecesFromTheDevice) {
  LateDriver driver;
  QueuePool pool;
  Memory memory;
  const Slice slice = memory.slice();
  for (std::uint64_t i = 0; i < slice.len_bytes; ++i) memory.bytes[memory.place_of(i)] = byte_at(i);
  auto staged = *StagedMemory::begin(pool, {slice, {&driver}}, DeviceCopy::from_device, 8192);
  std::uint64_t at = 0;
  for (std::uint64_t left = 9; left > 0; --left) {
    ASSERT_EQ(staged->pieces_left(), left);
    const Slice piece = *staged->next();
    const auto* const data = reinterpret_cast<const std::byte*>(piece.base);
    for (std::uint64_t i = 0; i < piece.len_bytes; ++i, ++at) ASSERT_EQ(data[i], byte_at(at));
  }
  EXPECT_EQ(staged->pieces_left(), 0u);
  EXPECT_EQ(at, slice.len_bytes);
}

TEST(StagedMemory, ChangesOnlyBytesOfTheSlice) {
  LateDriver driver;
  QueuePool pool;
  Memory memory;
  const Slice slice = memory.slice();
  auto staged = *StagedMemory::begin(pool, {slice, {&driver}}, DeviceCopy::to_device, 8192);
  constexpr std::uint64_t end = 10000;  // a read that meets the end of the file
  std::uint64_t at = 0;
  while (staged->pieces_left() > 0) {
    const Slice piece = *staged->next();
    auto* const data = reinterpret_cast<std::byte*>(piece.base);
    const std::uint64_t len = std::min(piece.len_bytes, end - at);
    for (std::uint64_t i = 0; i < len; ++i) data[i] = byte_at(at++);
    ASSERT_TRUE(staged->filled(len));
  }
  EXPECT_EQ(at, end);
  ASSERT_TRUE(staged->finish());
  std::vector<std::byte> expected(memory.bytes.size(), std::byte{0x5a});
  for (std::uint64_t i = 0; i < end; ++i) expected[memory.place_of(i)] = byte_at(i);
  EXPECT_EQ(memory.bytes, expected);
}

TEST(StagedMemory, WaitsAtTheEndAndKeepsTheQueue) {
  LateDriver driver;
  QueuePool pool;
  Memory memory;
  for (int i = 0; i < 3; ++i) {
    auto staged =
        *StagedMemory::begin(pool, {memory.slice(), {&driver}}, DeviceCopy::from_device, 8192);
    ASSERT_TRUE(staged->next());  // the copy of the second piece is under way
  }
  EXPECT_EQ(driver.made, 1);
  EXPECT_EQ(driver.open, 1);
  pool.clear();
  EXPECT_EQ(driver.open, 0);
}

TEST(CopyPieces, RowsOnlyWhereAPitchIsPossible) {
  const auto shape = [](const StripPair& pair) {
    std::string calls;
    EXPECT_TRUE(copy_pieces(
        pair,
        [&](std::uintptr_t, std::uintptr_t, std::uint64_t len) -> Status {
          calls += "p" + std::to_string(len);
          return {};
        },
        [&](const StripPair&) -> Status {
          calls += "r";
          return {};
        }));
    return calls;
  };
  EXPECT_EQ(shape({0, 0, 8, 8, 8, 4}), "p32");
  EXPECT_EQ(shape({0, 0, 8, 64, 8, 4}), "r");
  EXPECT_EQ(shape({0, 0, 8, 64, 8, 1}), "p8");
  EXPECT_EQ(shape({0, 64, 8, -8, 8, 2}), "p8p8");
  EXPECT_EQ(shape({0, 0, 8, 4, 8, 2}), "p8p8");
  EXPECT_EQ(shape({0, 0, 8, max_pitch_bytes + 1, 8, 2}), "p8p8");
}

}  // namespace
}  // namespace shima
