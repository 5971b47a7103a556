// Master files that name another file's parts: forged by another user, copied, or unpacked by the
// victim. Nothing may be written, truncated or removed through them; files that were moved, linked
// or copied with their parts remain usable.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "striped_world.h"

namespace shima {
namespace {

constexpr uid_t victim = 12345;
constexpr uid_t attacker = 12346;

const Bytes text = some_bytes(40000, 1);
const Bytes other_text = some_bytes(40000, 2);

class ForgedMaster : public StripedWorld {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs other users";
    StripedWorld::SetUp();
    new_world();
    give(root_.string(), victim);
    std::filesystem::create_directory(path("theirs"));
    give(path("theirs"), attacker);
    ASSERT_EQ(::chmod(path("theirs").c_str(), 0777), 0);
    as(victim, [&] { make("d/precious", three, text); });
  }

  static void give(const std::string& path, uid_t user) {
    ASSERT_EQ(::lchown(path.c_str(), user, user), 0);
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path, error))
      ASSERT_EQ(::lchown(entry.path().c_str(), user, user), 0);
  }
  // Runs in a process of that user.
  static void as(uid_t user, const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresgid(user, user, user) != 0 || ::setresuid(user, user, user) != 0) ::_exit(1);
      work();
      ::_exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "as user " << user;
  }
  MasterFile precious() { return read_master(path("d/precious")).value().value(); }
  void put(const std::string& name, const std::string& what, uid_t user) {
    std::ofstream(path(name)) << what;
    ASSERT_EQ(::chown(path(name).c_str(), user, user), 0);
  }

  // The victim's operations on a file whose parts belong to another file.
  void use(const std::string& name, bool readable = true) {
    as(victim, [&] {
      auto file = LogicalFile::open({.path = path(name), .read = true, .write = true});
      EXPECT_FALSE(file.has_value());
      if (file) std::ignore = file->write(FileOffset{0}, other_text.data(), other_text.size());
      if (!file) {
        EXPECT_EQ(file.error().code, Code::access_denied) << file.error().what;
        EXPECT_NE(file.error().what.find(path(name)), std::string::npos) << file.error().what;
      }
      EXPECT_FALSE(truncate_striped(path(name), 10).has_value());
      EXPECT_FALSE(restripe({path(name), cut}, {}).has_value());
      EXPECT_FALSE(set_permissions(path(name), 0).has_value());
      const auto reader = LogicalFile::open({.path = path(name), .read = true});
      EXPECT_EQ(reader.has_value(), readable);
      EXPECT_TRUE(check_files({path(name), true, true}).has_value());
      std::ignore = rename_file(path(name), path(name) + "-moved");
      std::ignore = rename_file(path(name) + "-moved", path(name));
      std::ignore = remove_file(path(name));
    });
    EXPECT_EQ(contents("d/precious"), text);
    EXPECT_EQ(precious().intent, std::nullopt);
  }
};

TEST_F(ForgedMaster, OfAnotherUserIsNotWrittenThrough) {
  put("theirs/results", encode_master(precious()), attacker);
  use("theirs/results");
}

TEST_F(ForgedMaster, WithAForgedCopyBesideItIsNotWrittenThrough) {
  MasterFile forged = precious();
  forged.regions = {{{0}, 4096, {"a", "b", "beside"}}};
  std::filesystem::create_directory(path("theirs/.shima"));
  put("theirs/.shima/.shima-target", "shima target beside\n", attacker);
  put("theirs/.shima/" + copy_name(forged.id), encode_copy({forged, path("theirs/results")}),
      attacker);
  put("theirs/.shima/" + subfile_name(forged.id, 2), "", attacker);
  give(path("theirs/.shima"), attacker);
  put("theirs/results", encode_master(forged), attacker);
  use("theirs/results");
}

// Also if a copy claims that the other user's part is the file's, since that copy is not the
// owner's.
TEST_F(ForgedMaster, ACopyVouchesForPartsOfItsOwnOwnerOnly) {
  MasterFile forged = precious();
  forged.regions = {{{0}, 4096, {"beside"}}};
  std::filesystem::create_directory(path("theirs/.shima"));
  put("theirs/.shima/.shima-target", "shima target beside\n", attacker);
  put("theirs/.shima/" + copy_name(forged.id), encode_copy({forged, path("theirs/results")}),
      attacker);
  give(path("theirs/.shima"), attacker);
  std::filesystem::create_hard_link(path("target-a/") + subfile_name(forged.id, 0),
                                    path("theirs/.shima/") + subfile_name(forged.id, 0));
  put("theirs/results", encode_master(forged), attacker);
  use("theirs/results");
}

// The master file comes from an archive packed by another user, or from cp.
TEST_F(ForgedMaster, OfTheVictimsOwnIsNotWrittenThrough) {
  put("e/unpacked", encode_master(precious()), victim);
  use("e/unpacked");
}

TEST_F(ForgedMaster, CannotHaveAnotherFileRemovedAsReplaced) {
  as(victim, [&] { make("e/own", three, other_text); });
  MasterFile own = read_master(path("e/own")).value().value();
  const ReplaceIntent replaced{precious().id, {"a", "b", "c"}};
  for (const uid_t owner : {attacker, victim})
    for (const Intent& intent :
         {Intent(replaced), Intent(MoveIntent{path("e/was"), path("e/own"), replaced})}) {
      own.intent = intent;
      put("e/own", encode_master(own), owner);
      as(victim, [&] {
        std::ignore = read_settled_master(path("e/own"));
        EXPECT_TRUE(check_files({path("e/own"), true, true}).has_value());
      });
      EXPECT_EQ(contents("d/precious"), text);
    }
}

TEST_F(ForgedMaster, CannotHaveAnotherFileRemovedAsAnUnfinishedRestripe) {
  as(victim, [&] { make("e/own", three, other_text); });
  const MasterFile own = read_master(path("e/own")).value().value();
  for (const uid_t owner : {attacker, victim}) {
    put("target-a/" + record_name(own.id), encode_master(precious()) + "copied 0 0\n", owner);
    as(victim, [&] {
      EXPECT_FALSE(restripe({path("e/own"), cut}, {}).has_value());
      EXPECT_FALSE(set_permissions(path("e/own"), 0).has_value());
      EXPECT_FALSE(rename_file(path("e/own"), path("e/moved")).has_value());
      EXPECT_FALSE(remove_file(path("e/own")).has_value());
    });
    EXPECT_EQ(contents("d/precious"), text);
    EXPECT_EQ(contents("e/own"), other_text);
  }
}

TEST_F(ForgedMaster, FilesThatHaveMovedAreWrittenAsEver) {
  const auto writable = [&](const std::string& name) {
    as(victim, [&] {
      auto file = LogicalFile::open({.path = path(name), .write = true});
      ASSERT_TRUE(file.has_value()) << file.error().what;
      require(file->write(FileOffset{0}, other_text.data(), other_text.size()));
      require(file->truncate(FileOffset{40000}));
    });
    EXPECT_EQ(contents(name), other_text);
  };
  // By mv, to another name and to another file system, where it becomes another file.
  std::filesystem::rename(path("d/precious"), path("e/moved"));
  writable("e/moved");
  std::filesystem::copy_file(path("e/moved"), path("e/away"));
  give(path("e/away"), victim);
  std::filesystem::remove(path("e/moved"));
  writable("e/away");
  // Under another name of the same file, and through a link.
  std::filesystem::create_hard_link(path("e/away"), path("d/linked"));
  writable("d/linked");
  std::filesystem::create_symlink(path("e/away"), path("d/symbolic"));
  writable("d/symbolic");
}

// A directory that was copied with its .shima is a real copy.
TEST_F(ForgedMaster, CopiesWithPartsOfTheirOwnAreFilesOfTheirOwn) {
  as(victim, [&] { make("e/whole", beside, text); });
  std::filesystem::copy(path("e"), path("copied"), std::filesystem::copy_options::recursive);
  give(path("copied"), victim);
  as(victim, [&] {
    auto file = LogicalFile::open({.path = path("copied/whole"), .write = true});
    ASSERT_TRUE(file.has_value()) << file.error().what;
    require(file->write(FileOffset{0}, other_text.data(), other_text.size()));
  });
  EXPECT_EQ(contents("copied/whole"), other_text);
  EXPECT_EQ(contents("e/whole"), text);
  as(victim, [&] { require(remove_file(path("copied/whole"))); });
  EXPECT_FALSE(std::filesystem::exists(path("copied/.shima/") +
                                       subfile_name(read_master(path("e/whole"))->value().id, 0)));
  EXPECT_EQ(contents("e/whole"), text);
}

}  // namespace
}  // namespace shima
