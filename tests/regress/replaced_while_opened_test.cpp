// Another file takes the name of one that is being opened for direct I/O: all bytes go to the file
// that was opened first. Before, whole blocks went to the other one, by its alignment.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <fstream>
#include <functional>
#include <utility>

#include "base/unique_fd.h"
#include "store/subfile/subfile.h"
#include "striped_world.h"

namespace {

// Called once, after a file was opened for writing in a directory.
std::function<void()> after_open;

int opened(long fd, int flags) {
  if (fd >= 0 && (flags & O_ACCMODE) == O_RDWR && after_open) std::exchange(after_open, nullptr)();
  return static_cast<int>(fd);
}

}  // namespace

// The store, linked into this program, calls this instead of the C library's.
extern "C" int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return opened(::syscall(SYS_openat, directory, path, flags, mode), flags);
}

namespace shima {
namespace {

class ReplacedWhileOpened : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    for (const char* name : {"d/f", "d/other"}) std::ofstream(path(name)) << "nothing";
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(ReplacedWhileOpened, TheOtherFileIsNotWritten) {
  after_open = [&] {
    std::filesystem::rename(path("d/f"), path("d/moved"));
    std::filesystem::rename(path("d/other"), path("d/f"));
  };
  const UniqueFd directory(::open(path("d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto file = open_subfile({.path = path("d/f"),
                                  .read = true,
                                  .write = true,
                                  .direct_read = true,
                                  .direct_write = true,
                                  .directory_fd = directory.get()});
  ASSERT_TRUE(file.has_value()) << describe(file.error());
  ASSERT_FALSE(after_open);
  const std::string text(std::size_t{3} << 20, 'x');  // edges and whole blocks
  require((*file)->write(TargetOffset{1}, text.data(), text.size()));
  EXPECT_TRUE(text_of("d/moved") == "n" + text);
  EXPECT_EQ(text_of("d/f"), "nothing");
  std::string found(text.size(), ' ');
  EXPECT_EQ((*file)->read(TargetOffset{1}, found.data(), found.size()).value(), text.size());
  EXPECT_TRUE(found == text);
  require((*file)->close());
}

}  // namespace
}  // namespace shima
