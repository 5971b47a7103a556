// Reads at a constant distance are detected, and only those cause read-ahead.
#include "independent/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

namespace shima {
namespace {

TEST(StrideWatch, TellsADistanceThatCameThreeTimes) {
  StrideWatch watch;
  EXPECT_EQ(watch.next(1000), 0);
  EXPECT_EQ(watch.next(1300), 0);
  EXPECT_EQ(watch.next(1600), 0);
  EXPECT_EQ(watch.next(1900), 0);
  EXPECT_EQ(watch.next(2200), 300);
  EXPECT_EQ(watch.next(2500), 300);
}

TEST(StrideWatch, ForgetsItAtTheFirstReadElsewhere) {
  StrideWatch watch;
  for (std::int64_t at = 0; at <= 5000; at += 1000) (void)watch.next(at);
  EXPECT_EQ(watch.next(6000), 1000);
  EXPECT_EQ(watch.next(6500), 0);
  EXPECT_EQ(watch.next(7000), 0);
}

constexpr std::int64_t piece_bytes = 4096;
constexpr std::int64_t stride_bytes = 4 << 20;  // beyond the kernel's own read-ahead
constexpr int piece_count = 16;

// A file without pages in the page cache.
class Uncached : public testing::Test {
 protected:
  void SetUp() override {
    const int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::vector<char> piece(piece_bytes, 'x');
    for (std::int64_t i = 0; i < piece_count; ++i)
      ASSERT_EQ(::pwrite(fd, piece.data(), piece.size(), i * stride_bytes), piece_bytes);
    ASSERT_EQ(::fsync(fd), 0);
    ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(fd);
    auto opened = LogicalFile::open({.path = path_, .read = true});
    ASSERT_TRUE(opened) << opened.error().what;
    file_.emplace(*std::move(opened));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  [[nodiscard]] bool cached(int piece) { return file_->cached(FileOffset{piece * stride_bytes}); }

  // Read-ahead is asynchronous.
  [[nodiscard]] bool comes(int piece) {
    for (int i = 0; i < 1000 && !cached(piece); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return cached(piece);
  }

  void read(ReadAhead& read_ahead, int piece) {
    const FileOffset at{piece * stride_bytes};
    read_ahead.before_read(at, piece_bytes);
    std::vector<char> data(piece_bytes);
    const auto found = file_->read(at, data.data(), data.size());
    ASSERT_TRUE(found);
    EXPECT_EQ(data, std::vector<char>(piece_bytes, 'x'));
  }

  const std::string path_ = "read_ahead." + std::to_string(::getpid());
  std::optional<LogicalFile> file_;
};

TEST_F(Uncached, PiecesOfAStrideAreThereBeforeTheyAreRead) {
  if (cached(0)) GTEST_SKIP() << "this file system keeps files in memory";
  ReadAhead read_ahead(*file_);
  for (int i = 0; i < 6; ++i) read(read_ahead, i);
  for (int i = 6; i < piece_count; ++i) EXPECT_TRUE(comes(i)) << i;
}

TEST_F(Uncached, NothingIsAskedForWhereItIsTurnedOff) {
  if (cached(0)) GTEST_SKIP() << "this file system keeps files in memory";
  ReadAhead read_ahead(*file_);
  read_ahead.enable(false);
  for (int i = 0; i < 6; ++i) read(read_ahead, i);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(cached(piece_count - 1));
}

}  // namespace
}  // namespace shima
