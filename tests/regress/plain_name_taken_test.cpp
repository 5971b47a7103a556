// A plain file is removed or renamed while a striped file gets its name: afterwards every part on
// the targets belongs to a file. Before, the system call took the name of the striped file, whose
// parts stayed on the targets for ever.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <utility>

#include "store/target/directory_lock.h"
#include "striped_world.h"

namespace {

// Called once, before a name is removed or changed.
std::function<void()> before_change;

void meddle() {
  if (before_change) std::exchange(before_change, nullptr)();
}

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" int unlink(const char* path) noexcept {
  meddle();
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  meddle();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace shima {
namespace {

class PlainNameTaken : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    ::setenv("SHIMA_LOCK_TIMEOUT", "0", 1);
    make("d/striped", three, some_bytes(40'000, 1));  // the directory has a lock file from now on
  }
  void TearDown() override {
    before_change = nullptr;
    ::unsetenv("SHIMA_LOCK_TIMEOUT");
    StripedWorld::TearDown();
  }
  void make_plain(const std::string& name) const { std::ofstream(path(name)) << "nothing"; }
};

TEST_F(PlainNameTaken, ByOneThatIsMovedOverAFileBeingRemoved) {
  make_plain("d/f");
  before_change = [&] { std::ignore = rename_file(path("d/striped"), path("d/f")); };
  require(remove_file(path("d/f")));
  EXPECT_FALSE(before_change) << "the file was removed in another way: the test sees nothing";
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

TEST_F(PlainNameTaken, ByOneThatIsCreatedWhereNothingIsToBeRemoved) {
  before_change = [&] { std::ignore = create_striped({.path = path("d/f"), .regions = three}); };
  const Status removed = remove_file(path("d/f"));
  ASSERT_FALSE(removed.has_value());
  EXPECT_EQ(removed.error().code, Code::no_such_file);
  EXPECT_FALSE(before_change);
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

TEST_F(PlainNameTaken, ByOneThatIsCreatedWhereAFileIsToBeMoved) {
  make_plain("d/f");
  before_change = [&] { std::ignore = create_striped({.path = path("d/g"), .regions = three}); };
  require(rename_file(path("d/f"), path("d/g")));
  EXPECT_FALSE(before_change);
  EXPECT_EQ(findings(false), "");
  expect_tidy();
}

TEST_F(PlainNameTaken, IsNotRemovedOrRenamedWhileAnotherHoldsTheLock) {
  make_plain("d/f");
  const auto held = DirectoryLock::take(path("d/striped"));
  ASSERT_TRUE(held.has_value());
  EXPECT_FALSE(remove_file(path("d/f")).has_value());
  EXPECT_FALSE(rename_file(path("d/f"), path("d/g")).has_value());
  EXPECT_TRUE(std::filesystem::exists(path("d/f")));
}

TEST_F(PlainNameTaken, DoesNotLeaveALockFileWhereAreNoStripedFiles) {
  make_plain("e/f");
  require(rename_file(path("e/f"), path("e/g")));
  require(remove_file(path("e/g")));
  EXPECT_FALSE(std::filesystem::exists(path("e/.shima")));
}

}  // namespace
}  // namespace shima
