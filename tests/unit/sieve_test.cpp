// Independent reads of many pieces: the bytes that they find, and the ranges that they read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "independent/independent.h"
#include "pattern_model.h"

namespace shima {
namespace {

using test::Maker;
using test::Modelled;
using test::Random;
using test::repeated;

std::byte byte_at(std::int64_t offset) {
  return std::byte{static_cast<unsigned char>(offset * 7 + offset / 251)};
}

class SievedRead : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void make_file(std::int64_t size) {
    std::vector<std::byte> content(as_unsigned(size));
    for (std::int64_t i = 0; i < size; ++i) content[as_unsigned(i)] = byte_at(i);
    const int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::write(fd, content.data(), content.size()), size);
    ::close(fd);
    auto opened = LogicalFile::open({.path = path_, .read = true});
    ASSERT_TRUE(opened) << opened.error().what;
    file_.emplace(*std::move(opened));
  }

  // Reads the slice into consecutive memory; memory is one piece, or pieces of `memory_piece`.
  std::vector<std::byte> read(const Slice& slice, std::uint64_t sieve_bytes = 0,
                              std::uint64_t memory_piece = 0) {
    std::vector<std::byte> data(slice.len_bytes);
    const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data.data()));
    const Pattern memory = memory_piece == 0 ? Pattern::contiguous(slice.len_bytes)
                                             : Pattern::tiled(Pattern::contiguous(memory_piece),
                                                              as_signed(memory_piece));
    const auto moved = move_independently({.direction = Direction::read,
                                           .file = slice,
                                           .memory = {memory, address, 0, slice.len_bytes},
                                           .options = {.sieve_bytes = sieve_bytes}},
                                          *file_, counters_);
    EXPECT_TRUE(moved) << moved.error().what;
    if (moved) data.resize(*moved);
    return data;
  }

  const std::string path_ = "sieve." + std::to_string(::getpid());
  std::optional<LogicalFile> file_;
  Counters counters_;
};

TEST_F(SievedRead, FindsTheBytesOfAnyOrderedPattern) {
  test::for_each_seed(300, [&](Random& random) {
    Modelled made = Maker(random, true).tree(3);
    if (made.bytes.empty()) return;
    const std::int64_t extent = made.highest() - made.lowest();
    if (random.one_in(2))  // with wide gaps
      made = repeated(2 + random.upto(6), extent + random.between(0, 100000), made);
    ASSERT_TRUE(made.ordered());
    const std::int64_t base = -made.lowest() + random.between(0, 100);
    const std::int64_t end = base + made.highest();
    make_file(random.one_in(3) ? random.between(1, end) : end);
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_));
    const std::uint64_t first = random.upto(made.bytes.size() - 1);
    const Slice slice{made.pattern, base, first, 1 + random.upto(made.bytes.size() - first - 1)};
    std::vector<std::byte> expected;
    for (std::uint64_t i = first; i < first + slice.len_bytes; ++i)
      if (base + made.bytes[i] < size) expected.push_back(byte_at(base + made.bytes[i]));
    EXPECT_EQ(read(slice, random.one_in(2) ? 1 + random.upto(5000) : 0,
                   random.one_in(2) ? 1 + random.upto(300) : 0),
              expected);
  });
}

// Blocks of an array: pieces close together, and wide gaps between groups of them.
TEST_F(SievedRead, LeavesWideGapsOut) {
  constexpr std::uint64_t groups = 10;
  const Pattern rows = Pattern::strided(16, 2048, Pattern::contiguous(1024));
  const Pattern block = Pattern::strided(groups, 65536, rows);
  make_file(std::int64_t{groups} * 65536);
  const auto data = read({block, 0, 0, block.len_bytes()});
  ASSERT_EQ(data.size(), block.len_bytes());
  EXPECT_EQ(data[1024], byte_at(2048));
  EXPECT_EQ(counters_.runs, groups);
  EXPECT_EQ(counters_.disk_bytes_read, groups * (15 * 2048 + 1024));
}

TEST_F(SievedRead, ReadsLargePiecesWithoutTheBytesBetween) {
  const Pattern pieces = Pattern::strided(10, 65536, Pattern::contiguous(32768));
  make_file(std::int64_t{10} * 65536);
  EXPECT_EQ(read({pieces, 0, 0, pieces.len_bytes()}).size(), pieces.len_bytes());
  EXPECT_EQ(counters_.disk_bytes_read, pieces.len_bytes());
}

}  // namespace
}  // namespace shima
