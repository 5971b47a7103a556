// Runs that are written through a mapping of the file.
#include "store/subfile/mapped_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "store/subfile/close_runs.h"
#include "store/subfile/posix_subfile.h"

namespace shima {
namespace {

using Bytes = std::vector<unsigned char>;

// Runs and the memory that they are written from.
struct Made {
  Bytes memory;
  std::vector<iovec> pieces;
  std::vector<ApartRun> runs;
};

class MappedWriteTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<Subfile> open(bool read = true) {
    auto file = open_posix_subfile({.path = path_, .read = read, .write = true, .create = true},
                                   std::make_unique<FileSystemCalls>());
    EXPECT_TRUE(file.has_value());
    return *std::move(file);
  }
  static std::mt19937_64 numbers(std::uint64_t seed) { return std::mt19937_64(seed); }
  [[nodiscard]] Bytes contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Random runs from `begin` on, of one to three pieces, each at most `longest` bytes.
  static Made make(std::mt19937_64& random, std::int64_t begin, std::size_t count,
                   std::size_t longest) {
    Made made;
    made.memory.resize(count * 3 * (longest + 2));
    for (unsigned char& byte : made.memory) byte = static_cast<unsigned char>(random());
    made.pieces.reserve(3 * count);  // runs point into it
    std::size_t at = 0;
    for (std::size_t k = 0; k < count; ++k) {
      begin += static_cast<std::int64_t>(random() % (2 * longest));
      ApartRun run{TargetOffset{begin}, {}, 0};
      const std::size_t first = made.pieces.size();
      for (std::size_t i = 0, pieces = 1 + random() % 3; i < pieces; ++i) {
        made.pieces.push_back({made.memory.data() + at, 1 + random() % longest});
        run.len_bytes += made.pieces.back().iov_len;
        at += made.pieces.back().iov_len + random() % 3;
      }
      run.pieces = std::span(made.pieces).subspan(first);
      made.runs.push_back(run);
      begin += as_signed(run.len_bytes);
    }
    return made;
  }

  static void put(Bytes& model, const Made& made) {
    for (const ApartRun& run : made.runs) {
      auto at = static_cast<std::size_t>(run.begin.value);
      model.resize(std::max(model.size(), at + run.len_bytes));
      for (const iovec& piece : run.pieces) {
        const auto* const bytes = static_cast<const unsigned char*>(piece.iov_base);
        std::copy_n(bytes, piece.iov_len, model.begin() + static_cast<std::ptrdiff_t>(at));
        at += piece.iov_len;
      }
    }
  }

  std::string path_ = "mapped.bin";
};

TEST_F(MappedWriteTest, TheFileHasTheBytesOfTheRunsAndNoOthers) {
  auto random = numbers(1);
  for (const bool readable : {true, false}) {
    std::filesystem::remove(path_);
    Bytes model;
    const auto file = open(readable);
    for (int round = 0; round < 200; ++round) {
      const auto begin = static_cast<std::int64_t>(random() % 200000);
      const Made made = make(random, begin, 1 + random() % 1500, 1 + random() % 100);
      ASSERT_TRUE(file->write_mapped(made.runs)) << "round " << round;
      put(model, made);
      if (random() % 20 == 0) {
        const std::uint64_t size = random() % 300000;
        ASSERT_TRUE(file->truncate(size));
        model.resize(size);
      }
      if (random() % 20 == 0) {
        ASSERT_TRUE(file->sync());
      }
      if (round % 20 == 0) {
        ASSERT_EQ(contents(), model) << "round " << round;
      }
    }
    ASSERT_TRUE(file->close());
    ASSERT_EQ(contents(), model);
  }
}

TEST_F(MappedWriteTest, RunsFarApartNeedSeveralWindows) {
  const auto file = open();
  Bytes bytes(1000, 7);
  const iovec piece{bytes.data(), bytes.size()};
  std::vector<ApartRun> runs;
  for (const std::int64_t mib : {0, 31, 32, 63, 64, 95, 96, 200, 1000, 100000})
    for (const std::int64_t more : {-2000, -700, 500})
      if ((mib << 20) + more >= 0)
        runs.push_back({TargetOffset{(mib << 20) + more}, std::span(&piece, 1), bytes.size()});
  ASSERT_TRUE(file->write_mapped(runs));
  for (const ApartRun& run : runs) {
    Bytes found(bytes.size() + 2);
    ASSERT_GE(file->read(run.begin + -1, found.data(), found.size()).value_or(0), bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), found.begin() + 1));
    EXPECT_EQ(found.front(), 0);
  }
}

// What another process writes between the runs at the same time stays.
TEST_F(MappedWriteTest, BytesBetweenTheRunsMayBeWrittenMeanwhile) {
  constexpr std::size_t count = 512;
  constexpr int rounds = 200;
  const auto file = open();
  ASSERT_TRUE(file->truncate(count * 16));
  const auto write_share = [&](Subfile& own, std::int64_t first, unsigned char value, bool mapped) {
    const Bytes bytes(8, value);
    const iovec piece{const_cast<unsigned char*>(bytes.data()), bytes.size()};
    std::vector<ApartRun> runs;
    for (std::size_t i = 0; i < count; ++i)
      runs.push_back({TargetOffset{first + static_cast<std::int64_t>(16 * i)}, std::span(&piece, 1),
                      bytes.size()});
    if (mapped) return own.write_mapped(runs);
    return std::ranges::all_of(
        runs, [&](const ApartRun& run) { return own.write(run.begin, run.pieces).has_value(); });
  };
  for (const bool other_maps : {true, false}) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    char byte = 0;
    const pid_t other = ::fork();
    if (other == 0) {
      const auto own = open();
      bool well = ::write(ready[1], &byte, 1) == 1;
      for (int i = 1; i <= rounds; ++i)
        well = write_share(*own, 8, static_cast<unsigned char>(i), other_maps) && well;
      ::_exit(well ? 0 : 1);
    }
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    for (int i = 1; i <= rounds; ++i)
      ASSERT_TRUE(write_share(*file, 0, static_cast<unsigned char>(255 - i), true));
    int status = -1;
    ASSERT_EQ(::waitpid(other, &status, 0), other);
    ASSERT_EQ(status, 0);
    for (const int end : ready) ::close(end);
    const Bytes all = contents();
    ASSERT_EQ(all.size(), count * 16);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(all[i], i % 16 < 8 ? 255 - rounds : rounds) << "byte " << i;
  }
}

TEST_F(MappedWriteTest, ThreadsShareAFile) {
  const auto file = open();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<unsigned>(t));
      for (int round = 0; round < 30; ++round) {
        const Made made = make(random, t * (std::int64_t{40} << 20), 300, 20);
        EXPECT_TRUE(file->write_mapped(made.runs));
      }
    });
  threads.clear();
  for (int t = 0; t < 4; ++t) {
    Bytes model;
    std::mt19937_64 random(static_cast<unsigned>(t));
    const std::int64_t begin = t * (std::int64_t{40} << 20);
    for (int round = 0; round < 30; ++round) put(model, make(random, begin, 300, 20));
    model.erase(model.begin(), model.begin() + begin);
    Bytes found(model.size());
    ASSERT_EQ(file->read(TargetOffset{begin}, found.data(), found.size()).value_or(0),
              found.size());
    EXPECT_EQ(found, model);
  }
}

TEST_F(MappedWriteTest, RunsThatOverlapOrAreOutOfOrderAreNotWritten) {
  const auto file = open();
  Bytes bytes(10);
  const iovec piece{bytes.data(), bytes.size()};
  const std::span<const iovec> pieces(&piece, 1);
  EXPECT_FALSE(file->write_mapped(
      std::vector<ApartRun>{{TargetOffset{100}, pieces, 10}, {TargetOffset{0}, pieces, 10}}));
  EXPECT_FALSE(file->write_mapped(
      std::vector<ApartRun>{{TargetOffset{0}, pieces, 10}, {TargetOffset{9}, pieces, 10}}));
  EXPECT_TRUE(contents().empty());
  EXPECT_TRUE(file->maps_writes());
}

// The memory that is to be written cannot be read: an error, as of pwrite, and no signal.
TEST_F(MappedWriteTest, MemoryThatIsNoneIsAnError) {
  const auto file = open();
  ASSERT_TRUE(file->truncate(4096));
  Bytes bytes(8, 1);
  const iovec bad{reinterpret_cast<void*>(4096), 8};
  const iovec good{bytes.data(), bytes.size()};
  std::vector<ApartRun> runs{{TargetOffset{8}, std::span(&bad, 1), 8},
                             {TargetOffset{32}, std::span(&good, 1), 8}};
  EXPECT_FALSE(file->write_mapped(runs));
  runs.front().pieces = std::span(&good, 1);
  EXPECT_TRUE(file->write_mapped(runs)) << "the next write is tried again";
  EXPECT_EQ(contents()[8], 1);
}

// The kernel changes the time of modification when a page is first written, and not afterwards, and
// reports no event (inotify(7)).
TEST_F(MappedWriteTest, AnyWriteIsSeenByThoseWhoWatchTheFile) {
  const auto file = open();
  const UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), path_.c_str(), IN_MODIFY), 0);
  const auto is_told = [&] {
    std::array<char, 4096> events{};
    return ::read(watch.get(), events.data(), events.size()) > 0;
  };
  auto random = numbers(3);
  const Made made = make(random, 0, 20, 20);
  ASSERT_TRUE(file->write_mapped(made.runs));
  EXPECT_TRUE(is_told());
  const std::array<timespec, 2> old{timespec{1000, 0}, timespec{1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), old.data(), 0), 0);
  ASSERT_TRUE(file->write_mapped(made.runs));
  EXPECT_TRUE(is_told());
  struct stat facts{};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_GT(facts.st_mtim.tv_sec, 1000);
}

TEST(CloseRuns, ManySmallRunsLieClose) {
  EXPECT_TRUE(lie_close(8, 8 * 1024));
  EXPECT_FALSE(lie_close(7, 56)) << "few";
  EXPECT_FALSE(lie_close(8, 8 * 2048)) << "far";
  EXPECT_FALSE(lie_close(std::vector<ApartRun>()));
}

}  // namespace
}  // namespace shima
