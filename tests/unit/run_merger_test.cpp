// Merged runs: random requests of several threads against a byte model, fewer calls on a slow disk,
// the end of the file, errors only for those whose bytes fail.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "base/units.h"
#include "independent/run_merger.h"
#include "store/subfile/posix_subfile.h"

namespace shima {
namespace {

constexpr std::int64_t piece_bytes = 512;

struct Disk {
  std::atomic<int> calls = 0;
  std::chrono::milliseconds each{0};
  std::int64_t bad_begin = -1;  // bytes from here to bad_end cannot be moved
  std::int64_t bad_end = -1;
};

class DiskCalls final : public FileSystemCalls {
 public:
  explicit DiskCalls(Disk& disk) : disk_(disk) {}
  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    return is_bad(pieces, count, offset) ? -1 : FileSystemCalls::pwritev(fd, pieces, count, offset);
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    return is_bad(pieces, count, offset) ? -1 : FileSystemCalls::preadv(fd, pieces, count, offset);
  }
  bool move_apart(int, std::span<const ApartRun>, bool, bool) override { return false; }

 private:
  bool is_bad(const iovec* pieces, int count, off_t offset) {
    ++disk_.calls;
    std::this_thread::sleep_for(disk_.each);
    off_t end = offset;
    for (int i = 0; i < count; ++i) end += static_cast<off_t>(pieces[i].iov_len);
    if (end <= disk_.bad_begin || offset >= disk_.bad_end) return false;
    errno = ENOSPC;
    return true;
  }
  Disk& disk_;
};

class RunMergerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::string(::testing::TempDir()) + "/run_merger.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::unique_ptr<Subfile> open() {
    auto opened = open_posix_subfile({.path = file(), .read = true, .write = true, .create = true},
                                     std::make_unique<DiskCalls>(disk_));
    EXPECT_TRUE(opened.has_value());
    return *std::move(opened);
  }
  [[nodiscard]] std::string file() const { return directory_ + "/data"; }
  [[nodiscard]] std::string stored() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string directory_;
  Disk disk_;
};

// The pieces that one of `clients` owns: every `clients`-th, from `first` on.
std::vector<MergeRun> own_runs(int client, int clients, int first, int count, std::byte* data) {
  std::vector<MergeRun> runs;
  for (int i = 0; i < count; ++i) {
    const std::int64_t begin = (std::int64_t{first + i} * clients + client) * piece_bytes;
    runs.push_back({.range = {{begin}, {begin + piece_bytes}}, .data = data + i * piece_bytes});
  }
  return runs;
}

TEST_F(RunMergerTest, ClientsInterleaveOnASlowDisk) {
  constexpr int clients = 4, parts = 3, pieces = 20;
  disk_.each = std::chrono::milliseconds(3);
  RunMerger merger(Direction::write);
  std::barrier together(clients);
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      const auto subfile = open();
      std::vector<std::byte> data(pieces * piece_bytes, std::byte(client + 1));
      together.arrive_and_wait();
      for (int part = 0; part < parts; ++part) {
        auto runs = own_runs(client, clients, part * pieces, pieces, data.data());
        EXPECT_TRUE(merger.move(*subfile, runs).has_value());
        for (const MergeRun& run : runs) EXPECT_EQ(run.moved_bytes, as_unsigned(piece_bytes));
      }
      EXPECT_TRUE(subfile->close().has_value());
    });
  for (std::thread& thread : threads) thread.join();
  const std::string found = stored();
  ASSERT_EQ(found.size(), as_unsigned(clients * parts * pieces * piece_bytes));
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], static_cast<char>(i / piece_bytes % clients + 1)) << i;
  EXPECT_LT(disk_.calls, clients * parts * pieces / 2) << "they were merged";
}

// Each thread owns the pieces whose number has its remainder; it writes and reads some of them at a
// time.
TEST_F(RunMergerTest, RandomRequestsKeepTheModelsBytes) {
  constexpr int clients = 5, pieces = 200, rounds = 30;
  RunMergers mergers;
  std::vector<std::vector<std::byte>> models(clients);
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      std::mt19937 random(static_cast<unsigned>(client) + 1);
      const auto subfile = open();
      const auto writer = mergers.of({1, 2}, Direction::write, false);
      const auto reader = mergers.of({1, 2}, Direction::read, false);
      std::vector<std::byte>& model = models[static_cast<std::size_t>(client)];
      model.resize(pieces * piece_bytes);
      auto all = own_runs(client, clients, 0, pieces, model.data());
      EXPECT_TRUE(writer->move(*subfile, all).has_value());
      for (int round = 0; round < rounds; ++round) {
        std::vector<MergeRun> some;
        std::ranges::copy_if(all, std::back_inserter(some),
                             [&](auto&) { return random() % 3 == 0; });
        for (const MergeRun& run : some) std::fill_n(run.data, piece_bytes, std::byte(random()));
        EXPECT_TRUE(writer->move(*subfile, some).has_value());
        std::vector<std::byte> read(pieces * piece_bytes);
        auto wanted = own_runs(client, clients, 0, pieces, read.data());
        EXPECT_TRUE(reader->move(*subfile, wanted).has_value());
        EXPECT_EQ(read, model);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(disk_.calls, 2 * clients * pieces * (rounds + 1));
}

TEST_F(RunMergerTest, AReadEndsWithTheFile) {
  const auto subfile = open();
  std::vector<std::byte> data(3 * piece_bytes, std::byte{7});
  EXPECT_TRUE(subfile->write({0}, data.data(), data.size()).has_value());
  std::vector<std::byte> found(5 * piece_bytes);
  auto runs = own_runs(0, 1, 0, 5, found.data());
  RunMerger merger(Direction::read);
  EXPECT_TRUE(merger.move(*subfile, runs).has_value());
  EXPECT_EQ(runs[2].moved_bytes, as_unsigned(piece_bytes));
  EXPECT_EQ(runs[3].moved_bytes, 0U);
  EXPECT_EQ(runs[4].moved_bytes, 0U);
}

TEST_F(RunMergerTest, OnlyThoseWhoseBytesFailAreTold) {
  constexpr int clients = 3, pieces = 6;
  disk_.each = std::chrono::milliseconds(3);
  disk_.bad_begin = 1 * piece_bytes;  // a piece of client 1
  disk_.bad_end = 2 * piece_bytes;
  RunMerger merger(Direction::write);
  std::array<Status, clients> outcomes;
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      const auto subfile = open();
      std::vector<std::byte> data(pieces * piece_bytes, std::byte(client + 1));
      auto runs = own_runs(client, clients, 0, pieces, data.data());
      outcomes[static_cast<std::size_t>(client)] = merger.move(*subfile, runs);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(outcomes[0].has_value());
  EXPECT_TRUE(outcomes[2].has_value());
  ASSERT_FALSE(outcomes[1].has_value());
  EXPECT_EQ(outcomes[1].error().code, Code::no_space);
  EXPECT_EQ(stored()[static_cast<std::size_t>(2 * piece_bytes)], 3);
}

TEST_F(RunMergerTest, KnowsWhichRunsAreInOrder) {
  auto runs = own_runs(0, 2, 0, 3, nullptr);
  EXPECT_TRUE(RunMerger::are_in_order(runs));
  runs[1].range.end = runs[2].range.begin;
  EXPECT_TRUE(RunMerger::are_in_order(runs));
  runs[1].range.end = runs[1].range.end + piece_bytes + 1;
  EXPECT_FALSE(RunMerger::are_in_order(runs)) << "they overlap";
  runs[1].range.end = runs[1].range.begin;
  EXPECT_FALSE(RunMerger::are_in_order(runs)) << "one is empty";
  std::swap(runs[0], runs[2]);
  EXPECT_FALSE(RunMerger::are_in_order(runs));
}

}  // namespace
}  // namespace shima
