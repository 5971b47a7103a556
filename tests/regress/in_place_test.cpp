// A user who may write a striped file but does not own it sets its size: the file keeps its owner
// and its access control lists, also if its directory permits no other user to replace it.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "layout/master_file.h"
#include "store/striped/parts.h"
#include "store/target/text_file.h"
#include "striped_world.h"

namespace shima {
namespace {

constexpr uid_t owner = 12345;
constexpr uid_t member = 12346;
constexpr gid_t group = 12340;

const Bytes text = some_bytes(40000, 1);
const Bytes beginning(text.begin(), text.begin() + 17000);

class InPlace : public StripedWorld {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs other users";
    StripedWorld::SetUp();
    new_world();
    for (const char* name : {"d", "e", "target-a", "target-b", "target-c"}) {
      ASSERT_EQ(::chown(path(name).c_str(), owner, group), 0);
      ASSERT_EQ(::chmod(path(name).c_str(), 0775), 0);
    }
  }
  static void as(uid_t user, const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::umask(002);
      if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
          ::setresuid(user, user, user) != 0)
        ::_exit(1);
      work();
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "as user " << user;
  }
  struct stat facts_of(const std::string& name) {
    struct stat facts{};
    EXPECT_EQ(::lstat(path(name).c_str(), &facts), 0) << name;
    return facts;
  }
  void make_for_group() {
    as(owner, [&] { make("d/f", mixed, text); });
    EXPECT_EQ(facts_of("d/f").st_mode & 0777U, 0664U);
  }
  void expect_resized() {
    as(member, [&] { require(truncate_striped(path("d/f"), beginning.size())); });
    EXPECT_EQ(facts_of("d/f").st_uid, owner);
    EXPECT_EQ(facts_of("d/f").st_gid, group);
    EXPECT_EQ(facts_of("d/f").st_mode & 0777U, 0664U);
    EXPECT_EQ(contents("d/f"), beginning);
    EXPECT_EQ(findings(false), "");
    as(owner, [&] { require(truncate_striped(path("d/f"), 100)); });
    EXPECT_EQ(facts_of("d/f").st_uid, owner);
  }
};

TEST_F(InPlace, TheFileStaysItsOwners) {
  make_for_group();
  expect_resized();
}

TEST_F(InPlace, AlsoInAStickyDirectory) {
  make_for_group();
  for (const char* name : {"d", "d/.shima", "target-a"})
    ASSERT_EQ(::chmod(path(name).c_str(), 03777), 0);
  expect_resized();
}

TEST_F(InPlace, AlsoInADirectoryThatOnlyTheOwnerMayWrite) {
  for (const char* name : {"d", "target-a", "target-b", "target-c"})
    ASSERT_EQ(::chmod(path(name).c_str(), 0755), 0);
  make_for_group();
  expect_resized();
}

TEST_F(InPlace, RenamingLeavesCopiesTheirOwners) {
  make_for_group();
  as(member, [&] { require(rename_file(path("d/f"), path("e/f"))); });
  EXPECT_EQ(facts_of("e/f").st_uid, owner);
  const MasterFile master = read_master(path("e/f")).value().value();
  EXPECT_EQ(facts_of("target-a/" + copy_name(master.id)).st_uid, owner);
  EXPECT_EQ(facts_of("e/.shima/" + copy_name(master.id)).st_uid, owner);
  as(member,
     [&] { EXPECT_TRUE(LogicalFile::open({.path = path("e/f"), .write = true}).has_value()); });
  EXPECT_EQ(contents("e/f"), text);
  expect_tidy();
}

// The state after a kill; the owner of the file or any other user who may write it finishes the
// operation.
TEST_F(InPlace, WhoeverMayWriteFinishesIt) {
  make_for_group();
  MasterFile master = read_master(path("d/f")).value().value();
  const std::string before = encode_master(master);
  master.intent = TruncateIntent{beginning.size()};
  const std::string after = encode_master(master);
  for (const std::size_t len : {after.size(), after.size() - 1, after.size() / 2, std::size_t{1}}) {
    as(owner, [&] {
      make("d/f", mixed, text);
      const UniqueFd fd(::open(path("d/f").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
      require(write_all(fd.get(), before + after.substr(0, len), "d/f"));
    });
    as(member, [&] {
      EXPECT_EQ(contents("d/f"), len == after.size() ? beginning : text);
      require(truncate_striped(path("d/f"), 300));
      EXPECT_EQ(contents("d/f"), Bytes(text.begin(), text.begin() + 300));
    });
    EXPECT_EQ(facts_of("d/f").st_uid, owner);
    EXPECT_EQ(facts_of("d/f").st_size, static_cast<off_t>(before.size()));
  }
}

TEST_F(InPlace, AccessControlListsAndAttributesStay) {
  make_for_group();
  // Version 2: tag, permissions, id; user 12399 may read and write.
  struct [[gnu::packed]] Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct [[gnu::packed]] {
    std::uint32_t version = 2;
    std::array<Entry, 5> entries{
        {{1, 6, ~0U}, {2, 6, 12399}, {4, 4, ~0U}, {16, 6, ~0U}, {32, 0, ~0U}}};
  } list;
  const std::string name = path("d/f");
  if (::setxattr(name.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access control lists here";
  ASSERT_EQ(::setxattr(name.c_str(), "user.origin", "run 7", 5, 0), 0);
  as(owner, [&] { require(truncate_striped(path("d/f"), beginning.size())); });
  std::array<char, 256> found{};
  EXPECT_EQ(::getxattr(name.c_str(), "system.posix_acl_access", found.data(), found.size()),
            static_cast<ssize_t>(sizeof list));
  EXPECT_EQ(::getxattr(name.c_str(), "user.origin", found.data(), found.size()), 5);
  EXPECT_EQ(contents("d/f"), beginning);
}

}  // namespace
}  // namespace shima
