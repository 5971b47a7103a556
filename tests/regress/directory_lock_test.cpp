// The lock of a directory is Shima's own: locks of other programs on the directory block no
// process, and the error after a timeout names the holder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "store/striped/intents.h"
#include "store/target/directory_lock.h"
#include "striped_world.h"

namespace shima {
namespace {

constexpr uid_t nobody = 65534;

class DirectoryLockTest : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    ::setenv("SHIMA_LOCK_TIMEOUT", "1", 1);
  }
  void TearDown() override {
    ::unsetenv("SHIMA_LOCK_TIMEOUT");
    StripedWorld::TearDown();
  }
};

// flock . shima ...
TEST_F(DirectoryLockTest, IsNotTheUsersOwnOnTheDirectory) {
  const UniqueFd directory(::open(path("d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(directory.get(), LOCK_EX), 0);
  ::alarm(30);  // ends the test if it waits for itself
  make("d/f", mixed, some_bytes(40000, 1));
  require(truncate_striped(path("d/f"), 100));
  require(rename_file(path("d/f"), path("d/g")));
  require(set_permissions(path("d/g"), 0600));
  EXPECT_EQ(findings(true), "");
  require(remove_file(path("d/g")));
  ::alarm(0);
}

TEST_F(DirectoryLockTest, CannotBeTakenByThoseWhoMayOnlyRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  make("d/f", three, some_bytes(40000, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(nobody, nobody, nobody) != 0) ::_exit(2);
    const std::string lock = path("d/.shima/.lock");
    const bool opened = ::open(lock.c_str(), O_RDONLY) >= 0 || ::open(lock.c_str(), O_RDWR) >= 0;
    ::_exit(opened || DirectoryLock::take(path("d/f")).has_value() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // A user who may write a file may also change its size.
  struct stat facts{};
  ASSERT_EQ(::chmod(path("d").c_str(), 0755), 0);
  ASSERT_EQ(::lstat(path("d/.shima/.lock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  require(set_permissions(path("d/f"), 0664));
  ASSERT_EQ(::lstat(path("d/.shima/.lock").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0660U);
}

TEST_F(DirectoryLockTest, NamesItsHolderToThoseWhoWaitInVain) {
  make("d/f", three, some_bytes(40000, 1));
  const auto held = DirectoryLock::take(path("d/f"));
  ASSERT_TRUE(held.has_value());
  const Status status = truncate_striped(path("d/f"), 100);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::timed_out);
  for (const std::string& word : {"process " + std::to_string(::getpid()),
                                  std::string("d/.shima/.lock"), std::string("SHIMA_LOCK_TIMEOUT")})
    EXPECT_NE(status.error().what.find(word), std::string::npos) << status.error().what;
  const auto tried = DirectoryLock::try_take(path("d/f"));
  ASSERT_FALSE(tried.has_value());
  EXPECT_EQ(tried.error().code, Code::file_in_use);
}

// Removing unused parts needs the lock, if there is one.
TEST_F(DirectoryLockTest, IsNotTakenForNoneWhereItCannotBeOpened) {
  const auto take = [&] {
    return DirectoryLock::take(path("d/f"), DirectoryLock::IfUnused::leave);
  };
  EXPECT_TRUE(take().has_value());  // there is none yet
  make("d/f", three, some_bytes(40000, 1));
  EXPECT_TRUE(take().has_value());
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const bool taken = take().has_value();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(taken);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path("d/.shima").c_str(), nobody, nobody), 0);
  const auto foreign = take();
  ASSERT_FALSE(foreign.has_value());
  EXPECT_EQ(foreign.error().code, Code::access_denied);
}

TEST_F(DirectoryLockTest, ExcludesThreadsAndOutlivesItsFile) {
  ::setenv("SHIMA_LOCK_TIMEOUT", "100", 1);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto work = [&](int number) {
    for (int i = 0; i < 30; ++i) {
      const auto lock = number % 2 == 0 ? DirectoryLock::take_both(path("d/f"), path("e/f"))
                                        : DirectoryLock::take_both(path("e/f"), path("d/f"));
      ASSERT_TRUE(lock.has_value()) << lock.error().what;
      most = std::max(most.load(), ++inside);
      --inside;
      // Another thread may make the lock's file again at the same time.
      std::error_code ignored;
      if (number == 0) std::filesystem::remove_all(path("d/.shima"), ignored);
      if (number == 1) std::filesystem::remove(path("e/.shima/.lock"), ignored);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace shima
