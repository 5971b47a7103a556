#include "file/pending_writes.h"

#include <gtest/gtest.h>

#include <random>

#include "pattern/cursor.h"

namespace shima {
namespace {

Slice placed(std::int64_t base, std::uint64_t len_bytes) {
  return {Pattern::contiguous(len_bytes), base, 0, len_bytes};
}

Transfer write_of(std::int64_t offset, const std::vector<std::byte>& data) {
  return {placed(offset, data.size()),
          placed(reinterpret_cast<std::intptr_t>(data.data()), data.size())};
}

// Random writes against an array: the batch has each byte's last value, in file order.
TEST(PendingWrites, LaterWritesReplaceEarlierOnes) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    PendingWrites pending;
    std::vector<int> model(400, -1);
    for (int i = 0; i < 60; ++i) {
      const auto offset = static_cast<std::size_t>(random() % 350);
      const std::vector<std::byte> data(1 + random() % 40, std::byte(i));
      ASSERT_TRUE(pending.keep(write_of(static_cast<std::int64_t>(offset), data)));
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(offset), data.size(), i);
    }
    for (std::int64_t at = 0; at < 400; ++at)
      EXPECT_EQ(pending.touches({at, at + 1}), model[static_cast<std::size_t>(at)] >= 0);
    const auto batch = pending.take();
    EXPECT_TRUE(pending.empty());
    EXPECT_TRUE(batch.transfer.file.pattern.ordered());
    std::vector<int> found(400, -1);
    std::size_t used = 0;
    for (Cursor cursor(batch.transfer.file); !cursor.done(); cursor.advance(1))
      found[static_cast<std::size_t>(cursor.strip().offset)] =
          std::to_integer<int>(batch.data[used++]);
    EXPECT_EQ(found, model);
  }
}

TEST(PendingWrites, ThereIsALimit) {
  PendingWrites pending;
  const std::vector<std::byte> data(std::size_t{20} << 20);
  EXPECT_TRUE(pending.keep(write_of(0, data)));
  EXPECT_FALSE(pending.keep(write_of(100, data)));
  EXPECT_EQ(pending.end(), std::int64_t{20} << 20);
}

TEST(PendingWrites, LargePiecesAreNotWorthKeeping) {
  EXPECT_TRUE(PendingWrites::worth_keeping(placed(0, 1000)));
  EXPECT_FALSE(PendingWrites::worth_keeping(placed(0, std::uint64_t{1} << 20)));
  EXPECT_FALSE(PendingWrites::worth_keeping(placed(0, 0)));
}

}  // namespace
}  // namespace shima
