// TIMEOUT: 120
// Regressions of striped files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "calm_clock.h"
#include "store/striped/intents.h"
#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "store/target/text_file.h"
#include "striped_world.h"

namespace {

// Called once, before the next open(2) that creates a file.
std::function<void()> before_creating;

}  // namespace

// The store, linked into this program, calls this instead of the C library's.
extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && before_creating) std::exchange(before_creating, nullptr)();
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace shima {
namespace {

constexpr uid_t nobody = 65534;

const Bytes text = some_bytes(40000, 1);

class StripedFiles : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
  }

  // Runs `work` in a process of a user who is not root; false if `work` fails or does not finish.
  bool as_nobody(const std::function<bool()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool changed = ::geteuid() != 0 || (::setresgid(nobody, nobody, nobody) == 0 &&
                                                ::setresuid(nobody, nobody, nobody) == 0);
      ::_exit(changed && work() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void give_world_to_nobody() {
    if (::geteuid() != 0) return;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_))
      ASSERT_EQ(::lchown(entry.path().c_str(), nobody, nobody), 0);
  }
  MasterFile master_of(const std::string& name) { return read_master(path(name)).value().value(); }
  std::string subfile(const std::string& name, const std::string& target, int index) {
    return path(target) + "/" + subfile_name(master_of(name).id, index);
  }
  static mode_t mode_of(const std::string& at) {
    struct stat facts{};
    EXPECT_EQ(::lstat(at.c_str(), &facts), 0) << at;
    return facts.st_mode & 07777;
  }
};

TEST_F(StripedFiles, ASizeThatCannotBeLeavesTheFileAsItWas) {
  // The first region's subfile can reach the new size, the other's cannot.
  const Bytes little(text.begin(), text.begin() + 100);
  make("d/f", {{{0}, 512, {"b"}}, {{8192}, std::uint64_t{1} << 40, {"c"}}}, little);
  const Status status = truncate_striped(path("d/f"), INT64_MAX);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().sys_errno, EFBIG);
  EXPECT_FALSE(master_of("d/f").intent.has_value());
  EXPECT_EQ(contents("d/f"), little);
  expect_tidy();
}

TEST_F(StripedFiles, NamesMayBeAsLongAsAnyFiles) {
  const std::string longest = "d/" + std::string(255, 'n');
  make("d/f", three, text);
  require(rename_file(path("d/f"), path(longest)));
  EXPECT_EQ(contents(longest), text);
  require(truncate_striped(path(longest), 100));
  EXPECT_EQ(contents(longest), Bytes(text.begin(), text.begin() + 100));
  make("e/" + std::string(255, 'm'), beside, text);
  std::ofstream(path("d/." + std::string(239, 'n') + ".shima-01234567"));
  const auto found = check_files({path(longest)});
  EXPECT_TRUE(std::ranges::any_of(found->findings, [](const Finding& finding) {
    return finding.problem == Problem::leftover_draft;
  }));
}

TEST_F(StripedFiles, WhatMayNotBeReadIsNotWrittenOver) {
  make("d/f", three, text);
  give_world_to_nobody();
  ASSERT_EQ(::chmod(path("d/f").c_str(), 0200), 0);
  EXPECT_TRUE(as_nobody([&] {
    const auto file = LogicalFile::open({.path = path("d/f"), .write = true});
    return !file && file.error().code == Code::access_denied &&
           !remove_file(path("d/f")).has_value() &&
           !rename_file(path("d/f"), path("d/g")).has_value();
  }));
  ASSERT_EQ(::chmod(path("d/f").c_str(), 0600), 0);
  EXPECT_EQ(contents("d/f"), text);
  // Files that cannot be master files are left alone.
  std::ofstream(path("d/empty"));
  std::filesystem::resize_file((std::ofstream(path("d/large")), path("d/large")), 1 << 20);
  give_world_to_nobody();
  for (const char* name : {"d/empty", "d/large"}) ASSERT_EQ(::chmod(path(name).c_str(), 0200), 0);
  EXPECT_TRUE(as_nobody([&] {
    return LogicalFile::open({.path = path("d/empty"), .write = true}).has_value() &&
           LogicalFile::open({.path = path("d/large"), .write = true}).has_value() &&
           remove_file(path("d/large")).has_value();
  }));
}

TEST_F(StripedFiles, PermissionsComeBackAsTheyWere) {
  make("d/f", three, text);
  give_world_to_nobody();
  EXPECT_TRUE(as_nobody([&] {
    for (const unsigned mode : {0000U, 0200U, 0644U})
      if (!set_permissions(path("d/f"), mode)) return false;
    return LogicalFile::open({.path = path("d/f"), .read = true, .write = true}).has_value();
  }));
  EXPECT_EQ(contents("d/f"), text);
  EXPECT_EQ(mode_of(path("d/f")), 0644U);
  EXPECT_EQ(mode_of(subfile("d/f", "target-a", 0)), 0644U);
}

TEST_F(StripedFiles, PartsWhoseFileMayNotBeReadAreNoOrphans) {
  make("d/f", three, text);
  give_world_to_nobody();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path("d/f").c_str(), 0, 0), 0);
  }
  ASSERT_EQ(::chmod(path("d/f").c_str(), 0), 0);
  EXPECT_TRUE(as_nobody([&] {
    const auto report = check_files({path("d"), true, true});
    return report && report->findings.size() == 1 &&
           report->findings.front().problem == Problem::unreadable;
  }));
  EXPECT_EQ(contents("d/f"), text);
}

// The copy that confirms the ownership of another user's parts must be in the same directory as the
// parts.
TEST_F(StripedFiles, AForgedCopyBesideAForgedFileOpensNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  make("d/victim", {{{0}, 4096, {"a", "b"}}}, text);
  MasterFile forged = master_of("d/victim");
  forged.regions = {{{0}, 4096, {"a", "beside"}}};
  for (const Intent& intent : {Intent(RemoveIntent{}), Intent(TruncateIntent{0})}) {
    forged.intent = intent;
    std::filesystem::create_directories(path("e/.shima"));
    std::ofstream(path("e/.shima/.shima-target")) << "shima target beside\n";
    std::ofstream(path("e/.shima/") + copy_name(forged.id)) << encode_copy({forged, path("e/f")});
    std::ofstream(path("e/.shima/") + subfile_name(forged.id, 1));
    std::ofstream(path("e/f")) << encode_master(forged);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("e")))
      ASSERT_EQ(::chown(entry.path().c_str(), nobody, nobody), 0);
    const auto opened = LogicalFile::open({.path = path("e/f"), .read = true});
    EXPECT_FALSE(opened.has_value());
    std::filesystem::remove_all(path("e"));
  }
  EXPECT_EQ(contents("d/victim"), text);
}

TEST_F(StripedFiles, TheDirectoryOfTheProgramMayChange) {
  make("d/f", three, text);
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(path("d"));
  auto file = LogicalFile::open({.path = "f", .read = true, .write = true});
  std::filesystem::current_path(path("e"));
  ASSERT_TRUE(file.has_value());
  require(file->truncate(FileOffset{100}));
  std::filesystem::current_path(here);
  EXPECT_EQ(contents("d/f"), Bytes(text.begin(), text.begin() + 100));
}

TEST_F(StripedFiles, AStripedFileThatAppearsMeanwhileIsNotOpenedAsAPlainOne) {
  before_creating = [&] { require(create_striped({.path = path("d/f"), .regions = three})); };
  auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true, .create = true});
  before_creating = nullptr;
  ASSERT_TRUE(file.has_value());
  ASSERT_NE(file->master(), nullptr);
  require(file->write(FileOffset{0}, text.data(), text.size()));
  EXPECT_EQ(contents("d/f"), text);
}

TEST_F(StripedFiles, WhatARestripeHasMadeIsNoMoreOpenThanTheFile) {
  make("d/f", three, text);
  int calls = 0;  // progress is recorded before the second
  const auto stop = [&](FileOffset, FileOffset) -> Status {
    return ++calls < 2 ? Status{} : fail(Code::io, "enough");
  };
  ASSERT_EQ(::chmod(path("d/f").c_str(), 0644), 0);
  EXPECT_FALSE(restripe({path("d/f"), cut, 1}, stop).has_value());
  require(set_permissions(path("d/f"), 0600));
  const auto unfinished = unfinished_restripe(master_of("d/f"), path("d/f"));
  ASSERT_TRUE(unfinished.has_value() && unfinished->has_value());
  const std::string first = path("target-b/") + subfile_name((*unfinished)->goal.id, 0);
  EXPECT_EQ(mode_of(first), 0600U);
  // chmod(1) changes only the master file.
  ASSERT_EQ(::chmod(path("d/f").c_str(), 0400), 0);
  require(restripe({path("d/f"), cut}, {}));
  EXPECT_EQ(mode_of(first), 0400U);
  EXPECT_EQ(contents("d/f"), text);
}

TEST_F(StripedFiles, TheDirectoryOfSubfilesIsAsOpenAsTheOneItIsIn) {
  const mode_t before = ::umask(077);
  ASSERT_EQ(::chmod(path("e").c_str(), 01777), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path("e").c_str(), nobody, nobody), 0);
  }
  make("e/f", beside, text);
  ::umask(before);
  EXPECT_EQ(mode_of(path("e/.shima")), 01777U);
  EXPECT_EQ(mode_of(path("e/f")), 0600U);
  EXPECT_EQ(mode_of(subfile("e/f", "e/.shima", 0)), 0600U);
  EXPECT_EQ(mode_of(path("e/.shima/.shima-target")), 0644U);
  struct stat directory{};
  ASSERT_EQ(::stat(path("e/.shima").c_str(), &directory), 0);
  EXPECT_EQ(directory.st_uid, ::geteuid() == 0 ? nobody : ::geteuid());
  EXPECT_TRUE(as_nobody(
      [&] { return create_striped({.path = path("e/g"), .regions = beside}).has_value(); }));
}

// A process with the directory's lock waits in open(2) for the restripe to release its lease.
TEST_F(StripedFiles, ARestripeDoesNotWaitForADirectoryWhoseUserWaitsForIt) {
  make("d/f", three, text);
  const std::string first = subfile("d/f", "target-a", 0);
  auto directory = DirectoryLock::take(path("d/f"));
  ASSERT_TRUE(directory.has_value());
  Status restriped;
  std::thread other([&] { restriped = restripe({path("d/f"), cut}, {}); });
  const auto is_leased = [&] {
    const UniqueFd fd(::open(first.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return !fd && errno == EWOULDBLOCK;
  };
  for (int i = 0; i < 100 && !is_leased(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const CalmClock clock;
  {
    const UniqueFd fd(::open(first.c_str(), O_WRONLY | O_CLOEXEC));
  }
  EXPECT_LT(clock.elapsed(), std::chrono::seconds(10));
  directory = fail(Code::internal, "");  // releases the lock
  other.join();
  if (!restriped) {
    EXPECT_EQ(restriped.error().code, Code::file_in_use);
  }
  EXPECT_EQ(contents("d/f"), text);
}

// The bytes of a file whose rename or restripe cannot be completed are where the master file says.
TEST_F(StripedFiles, WhatOnlyLacksTidyingUpCanBeRead) {
  make("d/f", three, text);
  MasterFile master = master_of("d/f");
  const FileId old = new_id().value();
  for (const Intent& intent :
       {Intent(ReplaceIntent{old, {"gone"}}),
        Intent(MoveIntent{path("d/before"), path("d/f"), ReplaceIntent{old, {"gone"}}})}) {
    master.intent = intent;
    require(put_master(path("d/f"), master));
    EXPECT_EQ(contents("d/f"), text);
    EXPECT_NE(findings(true).find("unfinished operation"), std::string::npos);
    EXPECT_TRUE(master_of("d/f").intent.has_value());
  }
}

TEST_F(StripedFiles, TheTargetsOfAnotherUserAreNotTaken) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs a second user";
  make("e/owners", three, text);
  ASSERT_EQ(::chmod(path("d").c_str(), 0777), 0);
  EXPECT_TRUE(as_nobody([&] {
    const Status created = create_striped({.path = path("d/f"), .regions = three});
    return !created && created.error().code == Code::access_denied &&
           created.error().what.find("target a ") != std::string::npos;
  }));
  EXPECT_TRUE(std::filesystem::is_empty(path("d")));
}

// The file's subfiles have moved, which is no damage.
TEST_F(StripedFiles, AFileThatIsMovedWhileItIsRestripedIsInUse) {
  make("d/f", beside, some_bytes(20'000'000, 2));
  const auto move = [&](FileOffset, FileOffset) -> Status {
    if (read_master(path("d/f")).value()) require(rename_file(path("d/f"), path("e/f")));
    return {};
  };
  const Status restriped = restripe({path("d/f"), cut, 1}, move);
  ASSERT_FALSE(restriped.has_value());
  EXPECT_EQ(restriped.error().code, Code::file_in_use) << restriped.error().what;
  EXPECT_EQ(contents("e/f"), some_bytes(20'000'000, 2));
  expect_tidy();
}

TEST_F(StripedFiles, APipeForASubfileIsAnError) {
  make("d/f", three, text);
  const std::string first = subfile("d/f", "target-a", 0);
  ASSERT_EQ(::unlink(first.c_str()), 0);
  ASSERT_EQ(::mkfifo(first.c_str(), 0600), 0);
  ::alarm(20);  // ends the test if it waits for a writer
  const auto file = LogicalFile::open({.path = path("d/f"), .read = true});
  ::alarm(0);
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().code, Code::bad_file);
  EXPECT_NE(findings(false).find("foreign subfile"), std::string::npos);
}

TEST_F(StripedFiles, NothingStaysOpen) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  make("d/f", mixed, text);
  make("d/lame", three, text);
  ASSERT_EQ(::unlink(subfile("d/lame", "target-c", 2).c_str()), 0);
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) {
    require(create_striped({.path = path("d/new"), .regions = mixed}));
    EXPECT_FALSE(
        create_striped({.path = path("d/new"), .regions = three, .exclusive = true}).has_value());
    EXPECT_EQ(contents("d/f"), text);
    EXPECT_FALSE(LogicalFile::open({.path = path("d/lame"), .read = true}).has_value());
    EXPECT_FALSE(LogicalFile::open({.path = path("d/none"), .read = true}).has_value());
    require(restripe({path("d/f"), i % 2 == 0 ? cut : mixed}, {}));
    EXPECT_FALSE(restripe({path("d/lame"), cut}, {}).has_value());
    require(truncate_striped(path("d/f"), text.size()));
    require(rename_file(path("d/new"), path("e/new")));
    require(remove_file(path("e/new")));
    findings(false);
  }
  EXPECT_EQ(open_files(), before);
}

// cp(1) copies the description, not the file.
TEST_F(StripedFiles, RemovingACopyOfTheMasterFileLeavesTheFile) {
  make("d/f", three, text);
  std::filesystem::copy_file(path("d/f"), path("e/copy"));
  const auto report = check_files({path(".")});
  EXPECT_TRUE(std::ranges::any_of(report->findings, [&](const Finding& finding) {
    return finding.path == path("e/copy") && finding.problem == Problem::second_master;
  }));
  require(remove_file(path("e/copy")));
  EXPECT_EQ(contents("d/f"), text);
  std::filesystem::copy_file(path("d/f"), path("e/copy"));
  make("e/g", three, text);
  require(rename_file(path("e/g"), path("e/copy")));
  EXPECT_EQ(contents("d/f"), text);
  EXPECT_EQ(contents("e/copy"), text);
  expect_tidy();
}

}  // namespace
}  // namespace shima
