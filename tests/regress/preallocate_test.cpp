// Preallocation on file systems without fallocate(2). The C library then writes zeros; within the
// file it looks at a byte and writes it again, so that bytes were lost that others wrote meanwhile.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "store/subfile/subfile.h"
#include "striped_world.h"

namespace {

constexpr off_t block = 4096;
int refusal = EOPNOTSUPP;
struct Calls {
  int interrupted = 0;  // so many will be
  int done = 0;

  bool are_interrupted() { return interrupted > 0 && interrupted-- > 0; }
};
Calls refused;
Calls filled;

// What another process writes while the C library has looked at a byte.
void write_elsewhere(int fd, off_t offset) { EXPECT_EQ(::pwrite(fd, "o", 1, offset), 1); }

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" int fallocate(int, int, off_t, off_t) {
  const bool is_interrupted = refused.are_interrupted();
  if (!is_interrupted) ++refused.done;
  errno = is_interrupted ? EINTR : refusal;
  return -1;
}

// As the C library does it.
extern "C" int posix_fallocate(int fd, off_t offset, off_t len) {
  if (filled.are_interrupted()) return EINTR;
  ++filled.done;
  struct stat facts{};
  if (::fstat(fd, &facts) != 0) return errno;
  for (off_t at = offset + (len - 1) % block; at < offset + len; at += block) {
    if (at < facts.st_size) {
      char byte = 0;
      if (::pread(fd, &byte, 1, at) != 1) return EIO;
      write_elsewhere(fd, at);
      if (byte != 0) continue;
    }
    if (::pwrite(fd, "", 1, at) != 1) return errno;
  }
  return 0;
}

namespace shima {
namespace {

class Preallocate : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    filled = refused = {};
  }
  // Of a file with this text.
  Status preallocate(const std::string& text, std::uint64_t size_bytes) {
    std::ofstream(path("d/f")) << text;
    SHIMA_TRY_ASSIGN(const auto file,
                     open_subfile({.path = path("d/f"), .read = true, .write = true}));
    SHIMA_TRY(file->preallocate(size_bytes));
    return file->close();
  }
  [[nodiscard]] std::string text() const {
    std::ifstream in(path("d/f"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(Preallocate, KeepsEveryByteOfTheFile) {
  const std::string before(10'000, '\0');  // zeros, as a file has where nothing was written
  for (const int why : {EOPNOTSUPP, ENOSYS}) {
    refusal = why;
    require(preallocate(before, 5000));  // within the file
    EXPECT_TRUE(text() == before);
    require(preallocate(before, 10'000));
    EXPECT_TRUE(text() == before);
    EXPECT_EQ(filled.done, 0);
    require(preallocate(before + "end", 50'000));  // and behind it
    EXPECT_TRUE(text() == before + "end" + std::string(39'997, '\0'));
    EXPECT_EQ(filled.done, 1);
    EXPECT_EQ(refused.done, 3);
    filled = refused = {};
  }
}

TEST_F(Preallocate, GoesOnAfterASignal) {
  refusal = EOPNOTSUPP;
  refused.interrupted = filled.interrupted = 2;
  require(preallocate("text", 9000));
  EXPECT_EQ(text().size(), 9000U);
  EXPECT_EQ(refused.interrupted + filled.interrupted, 0);
}

TEST_F(Preallocate, ReportsOtherErrors) {
  refusal = ENOSPC;
  const Status full = preallocate("text", 9000);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::no_space);
  EXPECT_EQ(text(), "text");
  EXPECT_EQ(filled.done, 0);
}

}  // namespace
}  // namespace shima
