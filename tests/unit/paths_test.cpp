// Paths on I/O nodes: their form, the map SHIMA_PATHS, and that nothing outside a served directory
// is reached.
#include "store/target/paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "iod/path/beneath.h"
#include "store/remote/place.h"

namespace shima {
namespace {

namespace fs = std::filesystem;

TEST(PathsTest, AFarPathHasANodeADirectoryAndAPath) {
  const auto found = remote::parse_far_path("iod://node1:7000/run//sub/file/");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->node.name(), "node1:7000");
  EXPECT_EQ(found->directory, "run");
  EXPECT_EQ(found->path, "sub/file");
  EXPECT_EQ(remote::parse_far_path("iod://[::1]:7000/run")->path, "");
  for (const char* bad : {"iod://node1:7000", "iod://node1:7000/", "iod://node1/run/file",
                          "iod://:7000/run/file", "/run/file", "iod:/node1:7000/run"})
    EXPECT_FALSE(remote::parse_far_path(bad)) << bad;
}

TEST(PathsTest, ColonsOfPlacesSeparateNoEntries) {
  const std::string first = "/run=iod://[::1]:7000/run/sub";
  EXPECT_EQ(remote::first_entry(first + ":/b=iod://b:1/b"), first.size());
  EXPECT_EQ(remote::first_entry("a=/disk:b=iod://b:1/b"), 7U);
}

class MapTest : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("SHIMA_PATHS"); }
  static std::string meant(const std::string& name) {
    const auto path = path_meant_by(name);
    return path ? *path : "error";
  }
};

TEST_F(MapTest, TheLongestDirectoryCounts) {
  EXPECT_EQ(meant("/run/file"), "/run/file");
  ::setenv("SHIMA_PATHS", "/run=iod://a:1/all:/run/x/=iod://b:2/some/sub/", 1);
  EXPECT_EQ(meant("/run/file"), "iod://a:1/all/file");
  EXPECT_EQ(meant("/run"), "iod://a:1/all");
  EXPECT_EQ(meant("/run/./x/../y/file"), "iod://a:1/all/y/file");
  EXPECT_EQ(meant("/run/x/file"), "iod://b:2/some/sub/file");
  EXPECT_EQ(meant("/runner/file"), "/runner/file");
  EXPECT_EQ(meant("iod://c:3/z/file"), "iod://c:3/z/file");
  EXPECT_EQ(meant("relative"), "relative");
}

TEST_F(MapTest, InvalidEntriesAreErrors) {
  for (const char* bad : {"/run", "run=iod://a:1/all", "/run=/elsewhere", "/run=iod://a/all"}) {
    ::setenv("SHIMA_PATHS", bad, 1);
    EXPECT_EQ(meant("/run/file"), "error") << bad;
  }
}

TEST(PathsTest, DirectoriesOfFarPathsAreFarPaths) {
  EXPECT_EQ(directory_of_path("iod://a:1/all/file"), "iod://a:1/all");
  EXPECT_EQ(name_from_anywhere("iod://a:1/all/file"), "iod://a:1/all/file");
  EXPECT_EQ(directory_of_path("file"), ".");
}

class BeneathTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("shima_beneath_" + std::to_string(::getpid()));
    fs::create_directories(directory_ / "served/sub");
    std::ofstream(directory_ / "secret") << "secret";
    std::ofstream(directory_ / "served/file") << "file";
    fs::create_symlink(directory_ / "secret", directory_ / "served/absolute");
    fs::create_symlink("../secret", directory_ / "served/relative");
    fs::create_symlink("..", directory_ / "served/up");
    fs::create_symlink("../file", directory_ / "served/sub/inside");
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path directory_;
};

TEST_F(BeneathTest, NothingOutsideIsReached) {
  const auto beneath = iod::Beneath::open((directory_ / "served").string());
  ASSERT_TRUE(beneath);
  for (const char* out : {"..", "../secret", "sub/../../secret", "absolute", "relative", "up",
                          "up/secret", "/etc/passwd", "/"}) {
    const auto found = beneath->object(out);
    ASSERT_FALSE(found) << out;
    EXPECT_EQ(found.error().code, Code::access_denied) << out;
    EXPECT_FALSE(beneath->real_path(out)) << out;
  }
  for (const char* no_name : {"", ".", "..", "sub/", "sub/..", "up/secret", "../secret", "x/y"})
    EXPECT_FALSE(beneath->name(no_name)) << no_name;
  // Calls of the system take only what comes before the zero byte.
  for (const std::string_view cut : {std::string_view("..\0x", 4), std::string_view("sub/..\0", 7)})
    EXPECT_FALSE(beneath->name(std::string(cut))) << cut;
}

TEST_F(BeneathTest, LinksThatStayInsideAreFollowed) {
  const auto beneath = iod::Beneath::open((directory_ / "served").string());
  ASSERT_TRUE(beneath);
  EXPECT_EQ(beneath->real_path("sub/inside").value_or("error"), "file");
  EXPECT_EQ(beneath->real_path("sub/../sub").value_or("error"), "sub");
  EXPECT_EQ(beneath->real_path("").value_or("error"), "");
  EXPECT_EQ(beneath->real_path("none").error().sys_errno, ENOENT);
  const auto name = beneath->name("sub/new");
  ASSERT_TRUE(name);
  EXPECT_EQ(::mkdir(name->path.c_str(), 0700), 0);
  EXPECT_TRUE(fs::is_directory(directory_ / "served/sub/new"));
}

}  // namespace
}  // namespace shima
