// TIMEOUT: 300
// Whatever is done to striped files, a process that does it may be killed at any moment.
//
// A child process does one thing to a small world of files, and is killed by SIGKILL before its
// first system call that changes something, in the next round before its second, and so on until it
// lives to the end; then again at random moments. Afterwards the metadata must be the old or the
// new, bytes outside a write's range unchanged, and fsck --repair must leave nothing behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "store/check.h"
#include "store/logical_file.h"
#include "store/master_store.h"
#include "store/restripe.h"

// --- system calls, counted ----------------------------------------------------------------------

namespace {

long calls_to_live = -1;  // -1: nobody counts

void come_to_call() {
  if (calls_to_live == 0) ::kill(::getpid(), SIGKILL);
  if (calls_to_live > 0) --calls_to_live;
}

template <class... Arguments>
long changing(long number, Arguments... arguments) {
  come_to_call();
  return ::syscall(number, arguments...);
}

}  // namespace

// The store, linked into this program, calls these instead of the C library's.
extern "C" {
int openat(int folder, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  if ((flags & (O_CREAT | O_TRUNC)) != 0) come_to_call();
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}
int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(more, unsigned) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags, mode);
}
ssize_t write(int fd, const void* data, size_t len) { return changing(SYS_write, fd, data, len); }
ssize_t pwrite(int fd, const void* data, size_t len, off_t at) {
  return changing(SYS_pwrite64, fd, data, len, at);
}
int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(changing(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int renameat(int a, const char* from, int b, const char* to) noexcept {
  return static_cast<int>(changing(SYS_renameat2, a, from, b, to, 0));
}
int link(const char* from, const char* to) noexcept {
  return static_cast<int>(changing(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
int linkat(int a, const char* from, int b, const char* to, int flags) noexcept {
  return static_cast<int>(changing(SYS_linkat, a, from, b, to, flags));
}
int unlink(const char* path) noexcept {
  return static_cast<int>(changing(SYS_unlinkat, AT_FDCWD, path, 0));
}
int unlinkat(int folder, const char* path, int flags) noexcept {
  return static_cast<int>(changing(SYS_unlinkat, folder, path, flags));
}
int ftruncate(int fd, off_t size) noexcept {
  return static_cast<int>(changing(SYS_ftruncate, fd, size));
}
int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_mkdirat, AT_FDCWD, path, mode));
}
int chmod(const char* path, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_fchmodat, AT_FDCWD, path, mode));
}
int fchmod(int fd, mode_t mode) noexcept {
  return static_cast<int>(changing(SYS_fchmod, fd, mode));
}
int fchmodat(int folder, const char* path, mode_t mode, int) noexcept {
  return static_cast<int>(changing(SYS_fchmodat, folder, path, mode));
}
}

namespace shima {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<char>;
using Regions = std::vector<StripedRegion>;

const Regions three{{{0}, 4096, {"a", "b", "c"}}};
const Regions cut{{{0}, 512, {"b"}}, {{8192}, 4096, {"c", "a"}}};
const Regions beside{{{0}, 4096, {"beside", "beside"}}};
const Regions mixed{{{0}, 4096, {"beside", "a", "beside"}}};

Bytes some_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (char& byte : bytes) byte = static_cast<char>(random() | 1U);  // no zeros: no holes
  return bytes;
}

void require(const Status& status) { ASSERT_TRUE(status.has_value()) << describe(status.error()); }

class StripedKill : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::current_path() / "world";
    ::setenv("SHIMA_TARGETS", (place("a") + ":" + place("b") + ":" + place("c")).c_str(), 1);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string place(const std::string& name) const {
    return name + "=" + (root_ / ("target-" + name)).string();
  }
  std::string path(const std::string& name) const { return (root_ / name).string(); }

  void new_world() {
    fs::remove_all(root_);
    for (const char* folder : {"target-a", "target-b", "target-c", "d", "e"})
      fs::create_directories(root_ / folder);
  }
  void make(const std::string& name, const Regions& regions, const Bytes& bytes) {
    require(create_striped({.path = path(name), .regions = regions}));
    auto file = LogicalFile::open({.path = path(name), .write = true});
    ASSERT_TRUE(file.has_value());
    require(file->write(FileOffset{0}, bytes.data(), bytes.size()));
  }

  // Nothing if there is no such file.
  std::optional<Bytes> contents(const std::string& name) {
    auto file = LogicalFile::open({.path = path(name), .read = true});
    if (!file) {
      EXPECT_EQ(file.error().code, Code::no_such_file) << file.error().what;
    }
    if (!file) return {};
    Bytes bytes(static_cast<std::size_t>(file->size().value().value));
    EXPECT_EQ(file->read(FileOffset{0}, bytes.data(), bytes.size()).value(), bytes.size());
    return bytes;
  }

  // Findings that are left, in words.
  std::string findings(bool repair) {
    const auto report = check_files({path("."), repair, repair});
    if (!report) return describe(report.error());
    std::string left;
    for (const Finding& finding : report->findings)
      if (!finding.is_note() && !finding.mended)
        left += finding.path + ": " + std::string(name_of(finding.problem)) + ": " + finding.what +
                "\n";
    return left;
  }

  // After a repair: every part belongs to a file, and no other file is left.
  void expect_tidy() {
    const std::string left = findings(true);
    if (!may_be_left_) {
      EXPECT_EQ(left, "");
    }
    const std::string again = findings(false);
    EXPECT_EQ(again, left);
    std::set<std::string> ids;
    for (const char* folder : {"d", "e"})
      for (const auto& entry : fs::directory_iterator(root_ / folder)) {
        if (entry.path().filename() == ".shima") continue;
        const auto master = read_master(entry.path().string());
        if (master.has_value() && *master) ids.insert((*master)->id.hex);
        EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
      }
    if (!left.empty()) return;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      const std::string folder = entry.path().parent_path().filename().string();
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file() || (folder != ".shima" && !folder.starts_with("target-")))
        continue;
      if (name.find(".shima-target") != std::string::npos)
        continue;  // also of one that did not become a target
      EXPECT_TRUE(ids.contains(name.substr(0, 32))) << entry.path();
    }
  }

  enum class End { killed, lived };
  // `moment`: the number of calls to live, or a time.
  End in_child(const std::function<Status()>& work, long calls,
               std::optional<std::chrono::microseconds> time = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      calls_to_live = calls;
      const Status status = work();
      calls_to_live = -1;
      if (!status) std::fprintf(stderr, "child: %s\n", describe(status.error()).c_str());
      ::_exit(status ? 0 : 1);
    }
    if (time) std::this_thread::sleep_for(*time);
    if (time) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return End::killed;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return End::lived;
  }

  struct Case {
    std::function<void()> prepare;
    std::function<Status()> work;
    std::function<void()> check;  // after the kill: the old or the new
  };
  void at_every_call(const Case& one) {
    End end = End::killed;
    for (long calls = 0; end == End::killed && !HasFailure(); ++calls) {
      SCOPED_TRACE("killed before changing call " + std::to_string(calls));
      round(one, calls, [&] { end = in_child(one.work, calls); });
      ++kills;
      ASSERT_LT(calls, 2000);
    }
    std::printf("%ld kills\n", kills);
  }
  void at_random_times(const Case& one, int rounds) {
    round(one, 0, [&] { in_child(one.work, -1); });
    new_world();
    one.prepare();
    const auto ready = std::chrono::steady_clock::now();
    in_child(one.work, -1);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - ready);
    std::mt19937 random(11);
    for (int i = 0; i < rounds && !HasFailure(); ++i) {
      const std::chrono::microseconds time(
          static_cast<long>(random() % static_cast<unsigned long>(took.count() + 1)));
      SCOPED_TRACE("killed after " + std::to_string(time.count()) + " us");
      round(one, i, [&] { in_child(one.work, -1, time); });
    }
  }
  // Whether an opener or fsck comes first must make no difference.
  void round(const Case& one, long number, const std::function<void()>& run) {
    new_world();
    one.prepare();
    run();
    if (number % 2 == 0) one.check();
    expect_tidy();
    one.check();
  }

  fs::path root_;
  bool may_be_left_ = false;  // by repair: an unfinished restripe
  long kills = 0;
};

const Bytes x = some_bytes(40000, 1);
const Bytes y = some_bytes(23456, 2);

TEST_F(StripedKill, Create) {
  for (const Regions& regions : {three, cut, beside, mixed})
    at_every_call({[&] { make("d/other", three, x); },
                   [&] { return create_striped({.path = path("d/new"), .regions = regions}); },
                   [&] {
                     const auto found = contents("d/new");
                     if (found) {
                       EXPECT_TRUE(found->empty());
                     }
                     EXPECT_EQ(contents("d/other"), x);
                   }});
}

TEST_F(StripedKill, Remove) {
  for (const Regions& regions : {three, mixed})
    at_every_call({[&] { make("d/old", regions, x); }, [&] { return remove_file(path("d/old")); },
                   [&] {
                     const auto found = contents("d/old");
                     if (found) {
                       EXPECT_EQ(*found, x);
                     }
                   }});
}

TEST_F(StripedKill, Truncate) {
  for (const Regions& regions : {three, cut})
    at_every_call({[&] { make("d/f", regions, x); },
                   [&] { return truncate_striped(path("d/f"), 17000); },
                   [&] {
                     const auto found = contents("d/f");
                     ASSERT_TRUE(found.has_value());
                     EXPECT_TRUE(*found == x || *found == Bytes(x.begin(), x.begin() + 17000));
                   }});
}

TEST_F(StripedKill, Rename) {
  for (const Regions& regions : {three, beside, mixed})
    for (const char* goal : {"d/to", "e/to"})
      at_every_call({[&] { make("d/from", regions, x); },
                     [&] { return rename_file(path("d/from"), path(goal)); },
                     [&] {
                       const auto from = contents("d/from");
                       const auto to = contents(goal);
                       EXPECT_NE(from.has_value(), to.has_value());
                       EXPECT_EQ(from ? *from : *to, x);
                     }});
}

TEST_F(StripedKill, RenameOverAnother) {
  for (const Regions& regions : {three, mixed})
    for (const char* goal : {"d/to", "e/to"})
      at_every_call({[&] {
                       make("d/from", regions, x);
                       make(goal, mixed, y);
                     },
                     [&] { return rename_file(path("d/from"), path(goal)); },
                     [&] {
                       const auto from = contents("d/from");
                       const auto to = contents(goal);
                       ASSERT_TRUE(to.has_value());
                       EXPECT_EQ(*to, from ? y : x);
                       if (from) {
                         EXPECT_EQ(*from, x);
                       }
                     }});
}

TEST_F(StripedKill, PlainOverStriped) {
  at_every_call({[&] {
                   make("d/to", mixed, y);
                   std::ofstream(path("d/from")) << "plain";
                 },
                 [&] { return rename_file(path("d/from"), path("d/to")); },
                 [&] {
                   const auto from = contents("d/from");
                   const Bytes plain{'p', 'l', 'a', 'i', 'n'};
                   EXPECT_EQ(contents("d/to"), from ? y : plain);
                 }});
}

TEST_F(StripedKill, Permissions) {
  at_every_call({[&] { make("d/f", mixed, x); }, [&] { return set_permissions(path("d/f"), 0600); },
                 [&] { EXPECT_EQ(contents("d/f"), x); }});
}

// --- restripe -----------------------------------------------------------------------------------

class RestripeKill : public StripedKill {
 protected:
  Case restripe_case(const Bytes& bytes, const Regions& from, const Regions& to) {
    may_be_left_ = true;
    return {[&] { make("d/f", from, bytes); }, [&] { return restripe({path("d/f"), to, 1}, {}); },
            [&] { check(bytes, to); }};
  }
  void check(const Bytes& bytes, const Regions& to) {
    EXPECT_EQ(contents("d/f"), bytes);
    if (!findings(false).empty()) {  // goes on
      const Status again = restripe({path("d/f"), to, 1}, {});
      EXPECT_TRUE(again.has_value()) << describe(again.error());
      EXPECT_EQ(read_master(path("d/f")).value()->regions, to);
      EXPECT_EQ(contents("d/f"), bytes);
    }
  }
};

TEST_F(RestripeKill, AtEveryCall) {
  at_every_call(restripe_case(x, three, cut));
  at_every_call(restripe_case(x, beside, mixed));
}

TEST_F(RestripeKill, AtRandomTimes) {
  const Bytes large = some_bytes(10'000'000, 3);
  at_random_times(restripe_case(large, three, cut), 40);
}

TEST_F(RestripeKill, GoesOnWhereItWas) {
  const Bytes large = some_bytes(30'000'000, 4);
  new_world();
  make("d/f", three, large);
  const auto stop = [](FileOffset done, FileOffset) -> Status {
    return done.value > 20'000'000 ? Status(fail(Code::io, "enough")) : Status{};
  };
  EXPECT_FALSE(restripe({path("d/f"), cut, 1}, stop).has_value());
  std::int64_t first = -1;
  const auto see = [&](FileOffset done, FileOffset) -> Status {
    if (first < 0) first = done.value;
    return {};
  };
  require(restripe({path("d/f"), cut, 1}, see));
  EXPECT_GT(first, 20'000'000);
  EXPECT_EQ(contents("d/f"), large);
  expect_tidy();
}

TEST_F(RestripeKill, WritersAreSeen) {
  new_world();
  make("d/f", three, x);
  {
    const auto writer = LogicalFile::open({.path = path("d/f"), .write = true});
    const Status refused = restripe({path("d/f"), cut, 1}, {});
    if (!refused) {
      EXPECT_EQ(refused.error().code, Code::file_in_use);
    }
    // Without leases a writer is seen when it writes.
    EXPECT_FALSE(refused.has_value());
  }
  require(restripe({path("d/f"), cut, 1}, {}));
  EXPECT_EQ(contents("d/f"), x);
  expect_tidy();
}

// Somebody opens the file for writing, writes a number, and closes it, again and again, while it is
// restriped: no number that was written may be lost.
TEST_F(RestripeKill, WritersThatComeLoseNothing) {
  new_world();
  make("d/f", three, x);
  const pid_t child = ::fork();
  if (child == 0) {
    for (std::uint64_t number = 1; number <= 120; ++number) {
      std::this_thread::sleep_for(std::chrono::milliseconds(number * 37 % 60));
      auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
      std::uint64_t before = 0;
      if (!file || !file->read(FileOffset{9000}, &before, sizeof before) ||
          (number > 1 && before != number - 1) ||
          !file->write(FileOffset{9000}, &number, sizeof number))
        ::_exit(1);
    }
    ::_exit(0);
  }
  int done = 0;
  int refused = 0;
  int status = 0;
  for (bool there = false; ::waitpid(child, &status, WNOHANG) == 0; there = !there) {
    const auto before = read_master(path("d/f"));
    const Status restriped = restripe({path("d/f"), there ? three : cut, 1}, {});
    const auto after = read_master(path("d/f"));
    if (restriped && before.value()->id != after.value()->id) ++done;
    if (!restriped) ++refused;
    if (!restriped) {
      EXPECT_EQ(restriped.error().code, Code::file_in_use) << restriped.error().what;
    }
  }
  EXPECT_EQ(status, 0);
  std::printf("%d restripes, %d refused\n", done, refused);
  const Bytes found = contents("d/f").value();
  std::uint64_t last = 0;
  std::memcpy(&last, found.data() + 9000, sizeof last);
  EXPECT_EQ(last, 120U);
}

// --- write --------------------------------------------------------------------------------------

class WriteKill : public StripedKill {
 protected:
  static constexpr std::size_t begin = 5000;
  static constexpr std::size_t len = 28000;

  Case write_case() {
    return {[&] { make("d/f", cut, x); }, [&] { return write(); }, [&] { check(); }};
  }
  Status write() {
    SHIMA_TRY_ASSIGN(auto file, LogicalFile::open({.path = path("d/f"), .write = true}));
    return file.write(FileOffset{begin}, y_and_more_.data(), len);
  }
  void check() {
    const auto found = contents("d/f");
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool inside = i >= begin && i < begin + len;
      ASSERT_TRUE((*found)[i] == x[i] || (inside && (*found)[i] == y_and_more_[i - begin])) << i;
    }
  }
  Bytes y_and_more_ = some_bytes(len, 5);
};

TEST_F(WriteKill, AtEveryCall) { at_every_call(write_case()); }
TEST_F(WriteKill, AtRandomTimes) { at_random_times(write_case(), 100); }

}  // namespace
}  // namespace shima
