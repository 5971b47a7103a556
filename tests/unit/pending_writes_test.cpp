#include "file/pending_writes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>

#include "pattern/cursor.h"

namespace {

std::size_t allocated_bytes = 0;
int left_to_fail = -1;  // how many allocations succeed before one fails; none fails below 0

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocated_bytes += bytes;
  void* const memory = left_to_fail-- == 0 ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace shima {
namespace {

Slice placed(std::int64_t base, std::uint64_t len_bytes) {
  return {Pattern::contiguous(len_bytes), base, 0, len_bytes};
}

Transfer write_of(std::int64_t offset, const std::vector<std::byte>& data) {
  return {placed(offset, data.size()),
          placed(reinterpret_cast<std::intptr_t>(data.data()), data.size())};
}

// The byte that each place has in the end; -1 where none was kept.
std::vector<int> contents_of(const PendingWrites::Batch& batch, std::size_t end) {
  std::vector<int> found(end, -1);
  std::size_t used = 0;
  for (Cursor cursor(batch.transfer.file); !cursor.done(); cursor.advance(1))
    found[static_cast<std::size_t>(cursor.strip().offset)] =
        std::to_integer<int>(batch.data[used++]);
  return found;
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
    EXPECT_EQ(contents_of(batch, 400), model);
  }
}

// Every allocation of a write over parts of several others fails in turn.
TEST(PendingWrites, WhatWasKeptOutlivesLackOfMemory) {
  constexpr std::size_t end = 100;
  const std::vector<std::byte> old(end, std::byte{1});
  const std::vector<std::byte> data(30, std::byte{2});
  const Slice pieces = {
      Pattern::list(std::vector<std::int64_t>{5, 45, 75}, std::vector<std::uint64_t>{10, 10, 10}),
      0, 0, 30};
  bool failed = true;
  for (int at = 0; failed; ++at) {
    PendingWrites pending;
    for (const std::int64_t begin : {0, 50})
      ASSERT_TRUE(pending.keep(
          {placed(begin, 50), placed(reinterpret_cast<std::intptr_t>(old.data()), 50)}));
    const Transfer write{pieces, placed(reinterpret_cast<std::intptr_t>(data.data()), 30)};
    left_to_fail = at;
    try {
      failed = !pending.keep(write);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    left_to_fail = -1;
    const auto found = contents_of(pending.take(), end);
    for (std::size_t i = 0; i < end; ++i) {
      const bool written = (i >= 5 && i < 15) || (i >= 45 && i < 55) || (i >= 75 && i < 85);
      EXPECT_TRUE(found[i] == (written ? 2 : 1) || (failed && found[i] == 1))
          << "byte " << i << " is " << found[i] << ", allocation " << at << " failed";
    }
  }
}

TEST(PendingWrites, ManyWritesDoNotCopyWhatIsThere) {
  constexpr std::size_t count = 4000;
  const std::vector<std::byte> data(128);
  PendingWrites pending;
  allocated_bytes = 0;
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_TRUE(pending.keep(write_of(static_cast<std::int64_t>(1000 * i), data)));
  EXPECT_LT(allocated_bytes, 20 * count * data.size());
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
