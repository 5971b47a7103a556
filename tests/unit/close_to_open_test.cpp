// A subfile where nodes cache apart, on a file system that is not NFS: descriptors are replaced to
// look again, and what was written is sent by fsync. The system calls are recorded.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/unique_fd.h"
#include "store/subfile/direct_subfile.h"
#include "store/subfile/posix_subfile.h"

namespace shima {
namespace {

struct Record {
  int syncs = 0;
  int sync_error = 0;  // of every fsync, if not 0
  int refused_locks = 0;
  bool locked = false;
  int io_flags = 0;  // of the descriptor of the last transfer
};

class Recorded final : public FileSystemCalls {
 public:
  explicit Recorded(Record& record) : record_(record) {}
  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    record_.io_flags = ::fcntl(fd, F_GETFL);
    return FileSystemCalls::pwritev(fd, pieces, count, offset);
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    record_.io_flags = ::fcntl(fd, F_GETFL);
    return FileSystemCalls::preadv(fd, pieces, count, offset);
  }
  int fsync(int fd) override {
    ++record_.syncs;
    errno = record_.sync_error;
    return record_.sync_error == 0 ? FileSystemCalls::fsync(fd) : -1;
  }
  // A refusal would be waited for.
  int try_lock(int fd, struct flock& range) override {
    const int code = FileSystemCalls::try_lock(fd, range);
    if (code == 0) record_.locked = range.l_type != F_UNLCK;
    if (code != 0) ++record_.refused_locks;
    return 0;
  }

 private:
  Record& record_;
};

class CloseToOpenTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<Subfile> open(Record& record, bool read = true, int more_flags = 0) {
    return *open_posix_subfile(
        {.path = path_, .read = read, .write = true, .create = true, .close_to_open = true},
        std::make_unique<Recorded>(record), more_flags);
  }
  [[nodiscard]] bool locked_by_others() const {
    const UniqueFd other(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_len = 3;
    return ::fcntl(other.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  }

  [[nodiscard]] std::ptrdiff_t open_descriptors() const {
    return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"),
                                 [this](const auto& entry) {
                                   std::error_code gone;  // the directory's own
                                   return std::filesystem::read_symlink(entry, gone) == path_;
                                 });
  }

  std::string path_ =
      (std::filesystem::temp_directory_path() / ("shima_apart_" + std::to_string(::getpid())))
          .string();
  char bytes_[3] = {'a', 'b', 'c'};
};

TEST_F(CloseToOpenTest, AFileOpenForWritingAloneExcludesNotItself) {
  Record record;
  const auto file = open(record, false);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(file->write(TargetOffset{0}, bytes_, 3).has_value());
    EXPECT_EQ(file->size().value(), 3U);
    file->look_again();
    EXPECT_EQ(file->size().value(), 3U);
    EXPECT_EQ(record.refused_locks, 0);
  }
  ASSERT_TRUE(file->publish().has_value());
  EXPECT_FALSE(record.locked);
}

TEST_F(CloseToOpenTest, ALockOutlivesALookAgainUnderIt) {
  Record record;
  const auto file = open(record);
  ASSERT_TRUE(file->write(TargetOffset{0}, bytes_, 3).has_value());
  ASSERT_TRUE(file->lock(TargetOffset{0}, 3, true).has_value());
  file->look_again();
  EXPECT_EQ(file->read(TargetOffset{0}, bytes_, 3).value(), 3U);
  EXPECT_TRUE(locked_by_others());
  file->unlock(TargetOffset{0}, 3);
  EXPECT_FALSE(locked_by_others());
  ASSERT_TRUE(file->close().has_value());
  EXPECT_EQ(open_descriptors(), 0);
}

TEST_F(CloseToOpenTest, ALookAgainReportsWhatWasNotWritten) {
  Record record;
  const auto file = open(record);
  ASSERT_TRUE(file->write(TargetOffset{0}, bytes_, 3).has_value());
  file->look_again();
  record.sync_error = ENOSPC;
  const auto read = file->read(TargetOffset{0}, bytes_, 3);
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::no_space);
  record.sync_error = 0;
  EXPECT_EQ(file->read(TargetOffset{0}, bytes_, 3).value(), 3U);
}

// O_NOATIME stands for O_DIRECT, which not every file system has.
TEST_F(CloseToOpenTest, TransfersPastThePageCacheStaySo) {
  constexpr std::size_t block = 4096;
  Record buffered;
  Record direct;
  alignas(block) static char blocks[block];
  const auto file =
      make_direct_subfile(open(buffered), open(direct, true, O_NOATIME), {true, true}, {});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(file->write(TargetOffset{0}, blocks, block).has_value());
    EXPECT_NE(direct.io_flags & O_NOATIME, 0);
    EXPECT_EQ(file->read(TargetOffset{0}, blocks, block).value(), block);
    EXPECT_NE(direct.io_flags & O_NOATIME, 0);
    file->look_again();
  }
}

TEST_F(CloseToOpenTest, TransfersPastThePageCacheArePublished) {
  constexpr std::size_t block = 4096;
  Record buffered;
  Record direct;
  alignas(block) static char blocks[block];
  const auto file = make_direct_subfile(open(buffered), open(direct), {true, true}, {});
  for (const bool by_sync : {false, true}) {
    ASSERT_TRUE(file->write(TargetOffset{0}, blocks, block).has_value());
    EXPECT_TRUE(direct.locked);
    direct.syncs = 0;
    ASSERT_TRUE((by_sync ? file->sync() : file->publish()).has_value());
    EXPECT_EQ(direct.syncs, 1);
    EXPECT_FALSE(direct.locked);
  }
}

}  // namespace
}  // namespace shima
