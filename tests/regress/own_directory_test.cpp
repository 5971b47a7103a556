// Races between creating the directory .shima and giving it its owner and mode: a user who may
// rename files there puts another file in its place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <utility>

#include "striped_world.h"

namespace {

// Called once, after a directory or a target's marker was created.
std::function<void()> after_mkdir;
std::function<void()> after_marker;

int made(long status) {
  if (status == 0 && after_mkdir) std::exchange(after_mkdir, nullptr)();
  return static_cast<int>(status);
}

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" int mkdir(const char* path, mode_t mode) noexcept {
  return made(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
extern "C" int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  return made(::syscall(SYS_mkdirat, directory, path, mode));
}
extern "C" int renameat(int a, const char* from, int b, const char* to) noexcept {
  const long status = ::syscall(SYS_renameat2, a, from, b, to, 0);
  const bool is_marker = std::string_view(to).ends_with(".shima-target");
  if (status == 0 && is_marker && after_marker) std::exchange(after_marker, nullptr)();
  return static_cast<int>(status);
}

namespace shima {
namespace {

constexpr uid_t nobody = 65534;
constexpr uid_t somebody = 12345;

class OwnDirectory : public StripedWorld {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs other users";
    StripedWorld::SetUp();
    new_world();
    std::filesystem::create_directory(path("private"));
    std::ofstream(path("private/secret")) << "secret";
    ASSERT_EQ(::chmod(path("private").c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path("private/secret").c_str(), 0600), 0);
  }
  struct stat facts_of(const std::string& name) {
    struct stat facts{};
    EXPECT_EQ(::lstat(path(name).c_str(), &facts), 0) << name;
    return facts;
  }
  void open_to_all(const std::string& name, uid_t owner, mode_t mode = 0777) {
    ASSERT_EQ(::chown(path(name).c_str(), owner, owner), 0);
    ASSERT_EQ(::chmod(path(name).c_str(), mode), 0);
  }
  Status create(const std::string& name) {
    return create_striped({.path = path(name), .regions = beside});
  }
  Status create_as(uid_t user, const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) ::_exit(255);
      const Status status = create(name);
      if (!status) std::fprintf(stderr, "%s\n", describe(status.error()).c_str());
      ::_exit(status ? 0 : static_cast<int>(status.error().code));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 0) return {};
    return fail(static_cast<Code>(WEXITSTATUS(status)), "");
  }
  // Neither its mode nor its owner has changed.
  void expect_private(const std::string& where) {
    EXPECT_EQ(facts_of(where).st_mode & 07777U, 0700U);
    EXPECT_EQ(facts_of(where).st_uid, 0U);
    EXPECT_EQ(facts_of(where + "/secret").st_mode & 07777U, 0600U);
    EXPECT_EQ(facts_of(where + "/secret").st_uid, 0U);
  }
};

TEST_F(OwnDirectory, ALinkPutInItsPlaceGivesNothingAway) {
  open_to_all("e", nobody);
  after_mkdir = [&] {
    std::filesystem::rename(path("e/.shima"), path("e/aside"));
    std::filesystem::create_symlink(path("private"), path("e/.shima"));
  };
  EXPECT_FALSE(create("e/f").has_value());
  expect_private("private");
}

TEST_F(OwnDirectory, AnotherDirectoryPutInItsPlaceIsNotGivenAway) {
  open_to_all("e", nobody);
  after_mkdir = [&] {
    std::filesystem::rename(path("e/.shima"), path("e/aside"));
    std::filesystem::rename(path("private"), path("e/.shima"));
  };
  std::ignore = create("e/f");
  expect_private("e/.shima");
}

TEST_F(OwnDirectory, AStrangersIsRefused) {
  open_to_all("e", 0, 01777);
  std::filesystem::create_directory(path("e/.shima"));
  open_to_all("e/.shima", nobody);
  const Status created = create("e/f");
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, Code::access_denied);
  EXPECT_NE(created.error().what.find("e/.shima belongs to user 65534"), std::string::npos)
      << created.error().what;
  EXPECT_EQ(create_as(somebody, "e/g").error().code, Code::access_denied);
  EXPECT_FALSE(std::filesystem::exists(path("e/f")));
  EXPECT_TRUE(std::filesystem::is_empty(path("e/.shima")));
}

TEST_F(OwnDirectory, OursAndTheDirectoriesOwnersAreAccepted) {
  open_to_all("e", nobody);
  require(create_as(nobody, "e/f"));
  require(create_as(somebody, "e/g"));
  require(create("e/h"));
  EXPECT_EQ(facts_of("e/.shima").st_uid, nobody);
  open_to_all("d", 0, 01777);
  require(create_as(somebody, "d/f"));
  require(create_as(somebody, "d/g"));
  EXPECT_EQ(create_as(nobody, "d/h").error().code, Code::access_denied);
}

TEST_F(OwnDirectory, AMembersIsAcceptedWhereAGroupSharesTheDirectory) {
  const auto create_in_group = [&](uid_t user, const std::string& name) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool changed =
          ::setresgid(nobody, nobody, nobody) == 0 && ::setresuid(user, user, user) == 0;
      ::_exit(changed && create(name) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  ASSERT_EQ(::chown(path("e").c_str(), somebody, nobody), 0);
  ASSERT_EQ(::chmod(path("e").c_str(), 02775), 0);
  for (const uid_t user : {uid_t{12346}, uid_t{12347}, somebody})
    EXPECT_TRUE(create_in_group(user, "e/" + std::to_string(user)));
}

TEST_F(OwnDirectory, ALinkInTheMarkersPlaceOpensNothing) {
  open_to_all("e", nobody);
  after_marker = [&] {
    std::filesystem::remove(path("e/.shima/.shima-target"));
    std::filesystem::create_symlink(path("private/secret"), path("e/.shima/.shima-target"));
  };
  std::ignore = create("e/f");
  EXPECT_EQ(after_marker, nullptr);
  expect_private("private");
}

}  // namespace
}  // namespace shima
