// A subfile moves all bytes or returns an error, whatever the system calls below it do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "store/subfile/close_to_open.h"
#include "store/subfile/direct_subfile.h"
#include "store/subfile/posix_subfile.h"
#include "store/target/permissions.h"

namespace shima {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes counting(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 256);
  return bytes;
}

// Cuts bytes into pieces of lengths 1, 2, ... `longest`, repeated; or one piece of them all.
std::vector<iovec> pieces_of(std::span<unsigned char> bytes, std::size_t longest) {
  if (longest >= bytes.size()) return {{bytes.data(), bytes.size()}};
  std::vector<iovec> pieces;
  for (std::size_t at = 0; at < bytes.size(); at += pieces.back().iov_len)
    pieces.push_back({bytes.data() + at, std::min(pieces.size() % longest + 1, bytes.size() - at)});
  return pieces;
}

// Calls that are interrupted, transfer a few bytes, and at the `stuck_at`th call none at all.
class Reluctant final : public FileSystemCalls {
 public:
  explicit Reluctant(int stuck_at = -1) : stuck_at_(stuck_at) {}
  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    return some(count, [&](int n) { return FileSystemCalls::pwritev(fd, pieces, n, offset); });
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    return some(count, [&](int n) { return FileSystemCalls::preadv(fd, pieces, n, offset); });
  }

 private:
  template <class Call>
  ssize_t some(int count, Call call) {
    if (++calls_ == stuck_at_) return 0;
    if (calls_ % 3 == 0) {
      errno = EINTR;
      return -1;
    }
    return call(std::max(1, std::min(count, calls_ % 7)));
  }
  int stuck_at_;
  int calls_ = 0;
};

class StoreTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<Subfile> open(
      std::unique_ptr<FileSystemCalls> calls = std::make_unique<FileSystemCalls>()) {
    auto file = open_posix_subfile({.path = path_, .read = true, .write = true, .create = true},
                                   std::move(calls));
    EXPECT_TRUE(file.has_value());
    return *std::move(file);
  }
  std::unique_ptr<Subfile> faulty(const std::string& spec) {
    return open(make_faulty_calls(spec).value());
  }
  Bytes contents() {
    const auto file = open();
    Bytes bytes(file->size().value());
    EXPECT_EQ(file->read(TargetOffset{0}, bytes.data(), bytes.size()).value(), bytes.size());
    return bytes;
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("shima_store_" + std::to_string(::getpid())))
          .string();
};

// Counts the calls of fsync.
class Counting final : public FileSystemCalls {
 public:
  explicit Counting(int& syncs) : syncs_(syncs) {}
  int fsync(int fd) override {
    ++syncs_;
    return FileSystemCalls::fsync(fd);
  }

 private:
  int& syncs_;
};

TEST_F(StoreTest, WhereNodesCacheApartWhatWasWrittenIsPublishedOnce) {
  int syncs = 0;
  for (const bool apart : {true, false}) {
    const auto file = *open_posix_subfile(
        {.path = path_, .read = true, .write = true, .create = true, .close_to_open = apart},
        std::make_unique<Counting>(syncs));
    syncs = 0;
    EXPECT_TRUE(file->publish().has_value());
    EXPECT_EQ(syncs, 0);
    ASSERT_TRUE(file->write(TargetOffset{0}, "abc", 3).has_value());
    EXPECT_TRUE(file->publish().has_value());
    EXPECT_TRUE(file->publish().has_value());
    EXPECT_EQ(syncs, apart ? 1 : 0);
  }
}

// Notes where the calls of pwritev begin, and how many bytes they have.
class NotedWrites final : public FileSystemCalls {
 public:
  struct Write {
    off_t offset;
    std::uint64_t len_bytes;
  };
  explicit NotedWrites(std::vector<Write>& writes) : writes_(writes) {}
  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    const ssize_t moved = FileSystemCalls::pwritev(fd, pieces, count, offset);
    writes_.push_back({offset, static_cast<std::uint64_t>(moved)});
    return moved;
  }

 private:
  std::vector<Write>& writes_;
};

TEST_F(StoreTest, AWriteIsCutWhereItsFoliosWouldBeTooLong) {
  constexpr off_t begin = 5000;
  Bytes bytes = counting(2'000'000);
  for (const std::size_t longest : {std::size_t{3000}, bytes.size()})
    for (const std::uint64_t portion : {std::uint64_t{0}, std::uint64_t{128} << 10,
                                        std::uint64_t{512} << 10, std::uint64_t{1} << 20}) {
      std::filesystem::remove(path_);
      std::vector<NotedWrites::Write> writes;
      const auto file = *open_posix_subfile(
          {.path = path_, .read = true, .write = true, .create = true, .portion_bytes = portion},
          std::make_unique<NotedWrites>(writes));
      const std::vector<iovec> pieces = pieces_of(bytes, longest);
      ASSERT_TRUE(file->write(TargetOffset{begin}, pieces).has_value());
      Bytes read(bytes.size());
      ASSERT_EQ(file->read(TargetOffset{begin}, read.data(), read.size()).value(), bytes.size());
      EXPECT_EQ(read, bytes);
      const UniqueFd fd(::open(path_.c_str(), O_RDONLY));
      if (portion == 0 || bytes.size() < 2 * portion || !is_local(fd.get())) {
        EXPECT_EQ(writes.size(), (pieces.size() + IOV_MAX - 1) / IOV_MAX);
        continue;
      }
      EXPECT_LT(writes.back().len_bytes, 2 * portion);
      writes.pop_back();
      EXPECT_FALSE(writes.empty());
      for (const auto& [offset, len_bytes] : writes) {
        EXPECT_EQ((static_cast<std::uint64_t>(offset) + len_bytes) % portion, 0U);
        EXPECT_LE(len_bytes, portion);
      }
    }
}

// A sync of a rank that has written nothing costs no fsync.
TEST_F(StoreTest, ASubfileKnowsWhetherItHasChangedSinceItsLastSync) {
  int syncs = 0;
  Bytes bytes = counting(100);
  EXPECT_FALSE(open()->is_synced()) << "it has made the file";
  const auto file = open_posix_subfile({.path = path_, .read = true, .write = true},
                                       std::make_unique<Counting>(syncs))
                        .value();
  EXPECT_TRUE(file->is_synced());
  const iovec piece{bytes.data(), bytes.size()};
  const ApartRun run{TargetOffset{5000}, std::span(&piece, 1), bytes.size()};
  using Change = std::function<bool()>;
  for (const Change& change : std::initializer_list<Change>{
           [&] { return file->write(TargetOffset{0}, bytes.data(), bytes.size()).has_value(); },
           [&] { return file->truncate(50).has_value(); },
           [&] { return file->preallocate(10000).has_value(); },
           [&] { return file->write_mapped(std::span(&run, 1)); },
       }) {
    EXPECT_TRUE(change());
    EXPECT_FALSE(file->is_synced());
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(file->is_synced());
  }
  EXPECT_EQ(syncs, 4);
}

TEST_F(StoreTest, ASyncThatFailsIsNoSync) {
  const auto file = faulty("sync:EIO");
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(file->is_synced());
}

TEST_F(StoreTest, ALockOutlivesALookAgain) {
  const auto file = *open_posix_subfile(
      {.path = path_, .read = true, .write = true, .create = true, .close_to_open = true},
      std::make_unique<FileSystemCalls>());
  ASSERT_TRUE(file->write(TargetOffset{0}, "abc", 3).has_value());
  file->look_again();
  ASSERT_TRUE(file->lock(TargetOffset{0}, 3, true).has_value());
  char bytes[3];
  ASSERT_EQ(file->read(TargetOffset{0}, bytes, 3).value(), 3U);
  const UniqueFd other(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_len = 3;
  ASSERT_EQ(::fcntl(other.get(), F_OFD_GETLK, &range), 0);
  EXPECT_EQ(range.l_type, F_WRLCK);
  file->unlock(TargetOffset{0}, 3);
}

TEST_F(StoreTest, LookingAgainOpensTheSameFileEvenIfItHasLostItsName) {
  const auto file = *open_posix_subfile(
      {.path = path_, .read = true, .write = true, .create = true, .close_to_open = true},
      std::make_unique<FileSystemCalls>());
  ASSERT_TRUE(file->write(TargetOffset{0}, "abc", 3).has_value());
  const FileIdentity before = file->identity().value();
  std::filesystem::remove(path_);
  const auto usurper = open();
  file->look_again();
  EXPECT_EQ(file->size().value(), 3u);
  EXPECT_EQ(file->identity().value(), before);
  ASSERT_TRUE(file->write(TargetOffset{3}, "d", 1).has_value());
  char found[4];
  file->look_again();
  EXPECT_EQ(file->read(TargetOffset{0}, found, 4).value(), 4u);
  EXPECT_EQ(std::string(found, 4), "abcd");
}

TEST_F(StoreTest, WritesThatFallShortAreContinued) {
  Bytes bytes = counting(20000);
  ASSERT_TRUE(open(std::make_unique<Reluctant>())
                  ->write(TargetOffset{0}, pieces_of(bytes, 40))
                  .has_value());
  EXPECT_EQ(contents(), bytes);
}

TEST_F(StoreTest, ReadsThatFallShortAreContinued) {
  const Bytes bytes = counting(20000);
  ASSERT_TRUE(open()->write(TargetOffset{0}, bytes.data(), bytes.size()).has_value());
  Bytes found(bytes.size());
  EXPECT_EQ(
      open(std::make_unique<Reluctant>())->read(TargetOffset{0}, pieces_of(found, 40)).value(),
      bytes.size());
  EXPECT_EQ(found, bytes);
}

TEST_F(StoreTest, AWriteThatMovesNothingIsAnError) {
  Bytes bytes = counting(20000);
  const Status status =
      open(std::make_unique<Reluctant>(5))->write(TargetOffset{0}, pieces_of(bytes, 40));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::io);
}

TEST_F(StoreTest, MorePiecesThanOneCallTakes) {
  Bytes bytes = counting(3 * IOV_MAX);
  std::vector<iovec> pieces;
  for (unsigned char& byte : bytes) pieces.push_back({&byte, 1});
  ASSERT_TRUE(open()->write(TargetOffset{5}, pieces).has_value());
  Bytes found(bytes.size());
  pieces.clear();
  for (unsigned char& byte : found) pieces.push_back({&byte, 1});
  EXPECT_EQ(open()->read(TargetOffset{5}, pieces).value(), bytes.size());
  EXPECT_EQ(found, bytes);
}

TEST_F(StoreTest, AReadStopsAtTheEndOfTheFile) {
  const auto file = open();
  const Bytes bytes = counting(1000);
  ASSERT_TRUE(file->write(TargetOffset{0}, bytes.data(), bytes.size()).has_value());
  Bytes found(500, 0xEE);
  EXPECT_EQ(file->read(TargetOffset{900}, found.data(), found.size()).value(), 100U);
  EXPECT_TRUE(std::equal(found.begin(), found.begin() + 100, bytes.begin() + 900));
  EXPECT_EQ(found[100], 0xEE);
  EXPECT_EQ(file->read(TargetOffset{1000}, found.data(), found.size()).value(), 0U);
  EXPECT_EQ(file->read(TargetOffset{5000}, found.data(), found.size()).value(), 0U);
}

// A user who may rename in the directory puts another file in the place of a new one.
TEST_F(StoreTest, OnlyANewFileIsGivenAway) {
  const std::string link = path_ + ".link";
  std::ignore = open();
  struct stat like{};
  ASSERT_EQ(::stat(path_.c_str(), &like), 0);
  like.st_mode = S_IFREG | 0600;
  if (::geteuid() == 0) like.st_uid = 12345;
  ASSERT_EQ(::link(path_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(give_new_file(AT_FDCWD, path_.c_str(), like).has_value());
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_FALSE(give_new_file(AT_FDCWD, link.c_str(), like).has_value());
  ASSERT_EQ(::unlink(link.c_str()), 0);
  EXPECT_TRUE(give_new_file(AT_FDCWD, path_.c_str(), like).has_value());
  struct stat given{};
  ASSERT_EQ(::stat(path_.c_str(), &given), 0);
  EXPECT_EQ(given.st_uid, like.st_uid);
  EXPECT_EQ(given.st_mode & 07777U, 0600U);
}

// Accepts only transfers that O_DIRECT accepts on a disk with large blocks.
class Strict final : public FileSystemCalls {
 public:
  explicit Strict(const DirectAlignment& alignment) : alignment_(alignment) {}
  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    check({pieces, static_cast<std::size_t>(count)}, offset);
    return FileSystemCalls::pwritev(fd, pieces, count, offset);
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    check({pieces, static_cast<std::size_t>(count)}, offset);
    return FileSystemCalls::preadv(fd, pieces, count, offset);
  }

 private:
  void check(std::span<const iovec> pieces, off_t offset) const {
    EXPECT_EQ(static_cast<std::uint64_t>(offset) % alignment_.block_bytes, 0U);
    for (const iovec& piece : pieces) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.iov_base) % alignment_.memory_bytes, 0U);
      EXPECT_EQ(piece.iov_len % alignment_.piece_bytes, 0U);
    }
  }
  DirectAlignment alignment_;
};

TEST_F(StoreTest, DirectTransfersKeepTheAlignmentOfTheFile) {
  const DirectAlignment wanted{.block_bytes = 16384, .memory_bytes = 512, .piece_bytes = 8192};
  const SubfileOpen request{.path = path_, .read = true, .write = true, .create = true};
  auto buffered = open_subfile(request);
  auto direct = open_posix_subfile(request, std::make_unique<Strict>(wanted));
  ASSERT_TRUE(buffered && direct);
  const auto file =
      make_direct_subfile(*std::move(buffered), *std::move(direct), {true, true}, wanted);
  alignas(16384) static std::array<unsigned char, 200000> memory;
  for (const std::size_t at : {0, 4096, 16384, 5})
    for (const std::size_t from : {0, 512, 3})
      for (const std::size_t len : {8192, 16384, 49152, 100000}) {
        const std::span<unsigned char> part(memory.data() + from, len);
        const Bytes data = counting(len);
        std::ranges::copy(data, part.begin());
        for (const std::size_t longest : {std::size_t{1} << 20, std::size_t{100}}) {
          const TargetOffset offset{static_cast<std::int64_t>(at)};
          ASSERT_TRUE(file->write(offset, pieces_of(part, longest)).has_value());
          std::ranges::fill(part, 0);
          ASSERT_EQ(file->read(offset, pieces_of(part, longest)).value(), len);
          ASSERT_TRUE(std::ranges::equal(part, data));
        }
      }
}

TEST_F(StoreTest, TheAlignmentOfDirectTransfersIsOfWholePages) {
  const auto file = open();
  const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const DirectAlignment found = direct_alignment(fd.get());
  EXPECT_EQ(found.block_bytes % static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), 0U);
  EXPECT_TRUE(std::has_single_bit(found.memory_bytes) && std::has_single_bit(found.piece_bytes));
  EXPECT_EQ(direct_alignment(-1).memory_bytes, 4096U);
}

// If the file system refuses O_DIRECT, the same bytes go through the page cache.
TEST_F(StoreTest, TransfersPastThePageCacheAreTheSame) {
  alignas(4096) static std::array<unsigned char, 200000> memory;
  const auto file = open_subfile({.path = path_,
                                  .read = true,
                                  .write = true,
                                  .create = true,
                                  .direct_read = true,
                                  .direct_write = true});
  ASSERT_TRUE(file.has_value());
  std::mt19937 random(7);
  const auto pick = [&](std::size_t most) { return random() % (most + 1); };
  Bytes model;
  for (int round = 0; round < 400; ++round) {
    const std::size_t grain = round % 3 == 0 ? 4096 : 1;
    const std::size_t at = pick(100000) / grain * grain;
    const bool writes = round % 2 == 0;
    Bytes data = counting(pick(90000) / grain * grain);
    for (unsigned char& byte : data) byte = static_cast<unsigned char>(byte + round);
    const std::span<unsigned char> part(memory.data() + pick(100) / grain * grain, data.size());
    std::ranges::copy(data, part.begin());
    const std::vector<iovec> pieces = pieces_of(part, grain == 1 ? pick(9000) + 1 : part.size());
    const TargetOffset offset{static_cast<std::int64_t>(at)};
    if (writes && !data.empty()) {
      ASSERT_TRUE((*file)->write(offset, pieces).has_value());
      model.resize(std::max(model.size(), at + data.size()));
      std::ranges::copy(data, model.begin() + offset.value);
    } else if (!writes) {
      const std::size_t there = at < model.size() ? std::min(data.size(), model.size() - at) : 0;
      ASSERT_EQ((*file)->read(offset, pieces).value(), there);
      if (there > 0) std::copy_n(model.begin() + offset.value, there, data.begin());
      ASSERT_TRUE(std::ranges::equal(part, data));
    }
  }
  EXPECT_EQ(contents(), model);
}

// Many direct transfers in one system call; if one of them cannot be direct, the ring makes none.
TEST_F(StoreTest, ManyTransfersPastThePageCacheAtOnce) {
  constexpr std::size_t block = 4096;
  constexpr std::size_t count = 600;
  const auto ring_works = [&] {
    const auto plain = open();
    unsigned char byte = 0;
    const iovec piece{&byte, 1};
    const ApartRun run{{0}, {&piece, 1}, 1};
    return plain->move_apart(std::span(&run, 1), true);
  };
  if (!ring_works()) GTEST_SKIP() << "no io_uring here";
  const auto file = open_subfile(
      {.path = path_, .read = true, .write = true, .direct_read = true, .direct_write = true});
  ASSERT_TRUE(file.has_value());
  alignas(block) static std::array<unsigned char, block * count> memory;
  std::vector<iovec> pieces;
  std::vector<ApartRun> runs;
  for (std::size_t i = 0; i < count; ++i) pieces.push_back({memory.data() + i * block, block});
  for (std::size_t i = 0; i < count; ++i)  // in permuted order
    runs.push_back({TargetOffset{static_cast<std::int64_t>((i * 7 % count) * 2 * block)},
                    {&pieces[i], 1},
                    block});
  std::ranges::copy(counting(memory.size()), memory.begin());
  const Bytes written(memory.begin(), memory.end());
  if (!(*file)->move_apart(runs, true)) GTEST_SKIP() << "no O_DIRECT here";
  const Bytes found = contents();
  ASSERT_EQ(found.size(), (2 * count - 1) * block);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_TRUE(std::equal(written.begin() + static_cast<std::ptrdiff_t>(i * block),
                           written.begin() + static_cast<std::ptrdiff_t>((i + 1) * block),
                           found.begin() + runs[i].begin.value));
  memory.fill(0);
  ASSERT_TRUE((*file)->move_apart(runs, false));
  EXPECT_TRUE(std::ranges::equal(memory, written));

  pieces[3] = {memory.data() + 3 * block, block - 1};
  runs[3].len_bytes = block - 1;
  memory.fill(1);
  EXPECT_FALSE((*file)->move_apart(runs, true));
  EXPECT_EQ(contents(), found);
  EXPECT_FALSE((*file)->move_apart(runs, false));
}

TEST_F(StoreTest, FaultsComeWhereTheyWereOrdered) {
  const Bytes bytes = counting(3000);
  const auto file = faulty("write:ENOSPC:after=3000,read:EIO:after=6000,sync:EIO");
  EXPECT_TRUE(file->write(TargetOffset{0}, bytes.data(), bytes.size()).has_value());
  const Status full = file->write(TargetOffset{3000}, bytes.data(), 1);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::no_space);
  EXPECT_EQ(full.error().sys_errno, ENOSPC);
  Bytes found(3000);
  EXPECT_EQ(file->read(TargetOffset{0}, found.data(), found.size()).value(), 3000U);
  const auto broken = file->read(TargetOffset{0}, found.data(), 1);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().code, Code::io);
  EXPECT_EQ(file->sync().error().code, Code::io);
}

TEST_F(StoreTest, ShortFaultsLoseNothing) {
  Bytes bytes = counting(100000);
  ASSERT_TRUE(faulty("write:short")->write(TargetOffset{10}, pieces_of(bytes, 5000)).has_value());
  Bytes found(bytes.size());
  EXPECT_EQ(faulty("read:short")->read(TargetOffset{10}, pieces_of(found, 3000)).value(),
            bytes.size());
  EXPECT_EQ(found, bytes);
}

TEST_F(StoreTest, AFaultThatIsNoneIsRefused) {
  for (const char* spec :
       {"", "write", "write:EBAD", "seek:EIO", "write:EIO:after=", "write:EIO:after=1x",
        "write:EIO:x=1", "kill:", "kill:disk", "kill:disk:x", "kill:nowhere:0", "kill:disk:0:0",
        "kill:disk:0:1:1", "kill:disk:0,kill:disk"})
    EXPECT_FALSE(make_faulty_calls(spec).has_value()) << spec;
  EXPECT_TRUE(make_faulty_calls("kill:disk:0,write:EIO,kill:open.agree:1:3").has_value());
}

TEST_F(StoreTest, OpeningSaysWhyNot) {
  const auto code = [](const SubfileOpen& request) {
    const auto file = open_posix_subfile(request, std::make_unique<FileSystemCalls>());
    return file ? Code::ok : file.error().code;
  };
  EXPECT_EQ(code({.path = path_, .read = true}), Code::no_such_file);
  EXPECT_EQ(code({.path = path_ + "/x", .write = true, .create = true}), Code::no_such_file);
  EXPECT_EQ(code({.path = "/tmp", .read = true}), Code::bad_file_name);
  open();
  EXPECT_EQ(code({.path = path_, .write = true, .create = true, .exclusive = true}),
            Code::file_exists);
  EXPECT_EQ(code({.path = path_ + "/x", .write = true, .create = true}), Code::bad_file_name);
}

TEST_F(StoreTest, SizesAreSetAndNeverShrunkByPreallocation) {
  const auto file = open();
  ASSERT_TRUE(file->truncate(5000).has_value());
  EXPECT_EQ(file->size().value(), 5000U);
  ASSERT_TRUE(file->preallocate(100).has_value());
  EXPECT_EQ(file->size().value(), 5000U);
  ASSERT_TRUE(file->preallocate(9000).has_value());
  EXPECT_EQ(file->size().value(), 9000U);
  EXPECT_EQ(contents(), Bytes(9000, 0));
}

TEST_F(StoreTest, OneFileHasOneIdentity) {
  const auto a = open();
  const auto b = open();
  EXPECT_EQ(a->identity().value(), b->identity().value());
}

}  // namespace
}  // namespace shima
