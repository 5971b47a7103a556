// Memory that one process creates and others map: what is there when they look, and how it comes.
#include "ipc/shared_buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/page_size.h"

namespace shima {
namespace {

constexpr std::size_t len_bytes = std::size_t{1} << 20;

SharedBuffer make_buffer() { return SharedBuffer::make(len_bytes, "shima-test").value(); }

std::size_t created_bytes(const SharedBuffer& buffer) {
  struct stat facts{};
  EXPECT_EQ(::fstat(buffer.ref().number, &facts), 0);
  return static_cast<std::size_t>(facts.st_blocks) * 512;
}

long faults_so_far() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

// Before Linux 5.14 it cannot; then only the bytes count.
bool kernel_creates() {
  SharedBuffer buffer = make_buffer();
  return ::madvise(buffer.bytes().data(), page_size(), MADV_POPULATE_WRITE) == 0;
}

TEST(SharedBuffer, ItsPartsAreCreatedWhenTouched) {
  SharedBuffer buffer = make_buffer();
  EXPECT_EQ(created_bytes(buffer), 0U);
  ASSERT_TRUE(buffer.touch({len_bytes / 4 + 100, len_bytes / 4}));
  if (kernel_creates()) {
    EXPECT_GE(created_bytes(buffer), len_bytes / 4);
  }
  ASSERT_TRUE(buffer.touch({0, len_bytes + 1}));  // as far as it goes
  if (kernel_creates()) {
    EXPECT_GE(created_bytes(buffer), len_bytes);
  }
}

TEST(SharedBuffer, AnEmptyPartIsNotCreated) {
  SharedBuffer buffer = make_buffer();
  ASSERT_TRUE(buffer.touch({100, 0}));
  EXPECT_EQ(created_bytes(buffer), 0U);
}

TEST(SharedBuffer, TouchingKeepsItsBytesWhereverThePartsLie) {
  std::mt19937 random(12);
  for (int round = 0; round < 50; ++round) {
    SharedBuffer buffer = make_buffer();
    std::vector<std::byte> model(len_bytes);
    PeerBuffers peers;
    for (int i = 0; i < 20; ++i) {
      const std::size_t offset = random() % len_bytes;
      const BufferPart part{offset, random() % (len_bytes - offset)};
      ASSERT_TRUE(buffer.touch(part));
      const auto seen = peers.get(buffer.ref(), part);
      ASSERT_TRUE(seen.has_value());
      const auto value = static_cast<std::byte>(random());
      std::ranges::fill(seen->subspan(part.offset, part.len_bytes), value);
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(offset), part.len_bytes, value);
    }
    ASSERT_TRUE(std::ranges::equal(buffer.bytes(), model));
  }
}

// A fault for each page took up to half of the time of a first call. A thread sanitizer has faults
// of its own.
TEST(PeerBuffers, MapWhatIsThereInLargeSteps) {
  const auto pages = static_cast<long>(len_bytes / page_size());
  SharedBuffer buffer = make_buffer();
  ASSERT_TRUE(buffer.touch({0, len_bytes}));
  PeerBuffers peers;
  const long before = faults_so_far();
  const auto seen = peers.get(buffer.ref(), {0, len_bytes});
  ASSERT_TRUE(seen.has_value());
  for (std::size_t at = 0; at < len_bytes; at += page_size()) (*seen)[at] = std::byte{1};
#ifndef __SANITIZE_THREAD__
  if (kernel_creates()) {
    EXPECT_LT(faults_so_far() - before, std::max(pages / 4, 20L));
  }
#endif
  EXPECT_EQ(std::ranges::count(buffer.bytes(), std::byte{1}), pages);
}

}  // namespace
}  // namespace shima
