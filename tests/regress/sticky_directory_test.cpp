// Files in a sticky directory that an I/O node serves: whether a directory .shima of another user
// is trusted depends on the owner of the file itself, as for local files. Before, the owner of a
// file called "any" decided.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "iod_world.h"
#include "store/remote/remote_files.h"
#include "store/striped/restripe.h"
#include "store/subfile/file_steps.h"
#include "store/target/paths.h"

namespace shima {
namespace {

constexpr uid_t nobody = 65534;

class StickyDirectory : public IodWorld {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs other users";
    IodWorld::SetUp();
    std::filesystem::create_directories(path("served/shared"));
    ASSERT_EQ(::chmod(path("served/shared").c_str(), 01777), 0);
    auto wanted = options(0);
    wanted.listen.port = "0";
    wanted.directories = {{"dir", path("served")}};
    auto started = iod::Daemon::start(wanted);
    ASSERT_TRUE(started.has_value()) << describe(started.error());
    node_ = *std::move(started);
  }
  void TearDown() override {
    node_.reset();
    IodWorld::TearDown();
  }

  [[nodiscard]] std::string far(const std::string& name) const {
    return "iod://127.0.0.1:" + node_->address().port + "/dir/shared/" + name;
  }
  void give(const std::string& name, uid_t owner) const {
    ASSERT_EQ(::lchown(path("served/shared/" + name).c_str(), owner, owner), 0) << name;
  }
  // A file of that user, striped over files beside it.
  void make_file_of(uid_t owner, const std::string& name) const {
    require(create_striped({.path = far(name), .regions = beside}));
    give(name, owner);
    give(".shima", owner);
    for (const auto& part : std::filesystem::directory_iterator(path("served/shared/.shima")))
      give(".shima/" + part.path().filename().string(), owner);
  }

  std::unique_ptr<iod::Daemon> node_;
};

TEST_F(StickyDirectory, AStrangersDirectoryIsNotUsedForOtherFiles) {
  make_file_of(nobody, "any");
  const auto files = tree_at(far("f")).files_beside(far("f"), FileTree::BesideFiles::create);
  ASSERT_FALSE(files.has_value());
  EXPECT_EQ(files.error().code, Code::access_denied);
  EXPECT_FALSE(create_striped({.path = far("f"), .regions = beside}).has_value());
}

TEST_F(StickyDirectory, TheOwnersDirectoryIsUsedForItsFile) {
  make_file_of(nobody, "f");
  require(restripe({.path = far("f"), .regions = {{{0}, 512, {"beside"}}}}, {}));
  EXPECT_TRUE(tree_at(far("f")).files_beside(far("f"), FileTree::BesideFiles::create).has_value());
}

TEST_F(StickyDirectory, ANameLeadsNowhereElse) {
  const auto place = remote::parse_far_path(far("f"));
  ASSERT_TRUE(place.has_value());
  for (const std::string& name : {std::string("../any"), std::string("a\0b", 3)}) {
    const auto files = remote::remote_files({place->node, "dir/shared"}, path("key"));
    const TargetFiles::Step attach{
        .kind = TargetFiles::Step::Kind::attach, .name = name, .bytes = 1};
    const Status attached = take_steps(*files, std::span(&attach, 1)).front().done;
    ASSERT_FALSE(attached.has_value());
    EXPECT_EQ(attached.error().code, Code::bad_file_name);
  }
}

}  // namespace
}  // namespace shima
