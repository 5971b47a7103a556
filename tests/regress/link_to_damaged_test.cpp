// A symbolic link is removed and renamed as a link, also if the file that it leads to is a damaged
// master file.
#include <gtest/gtest.h>

#include <fstream>

#include "store/striped/master_store.h"
#include "striped_world.h"

namespace shima {
namespace {

namespace fs = std::filesystem;

class LinkToDamaged : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    std::ofstream(path("damaged")) << master_magic << "1\nnothing of a master file\n";
    fs::create_symlink("damaged", path("link"));
  }
};

TEST_F(LinkToDamaged, IsRemovedAsALink) {
  ASSERT_FALSE(remove_file(path("damaged")).has_value());
  const Status removed = remove_file(path("link"));
  EXPECT_TRUE(removed.has_value()) << removed.error().what;
  EXPECT_FALSE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::exists(path("damaged")));
}

TEST_F(LinkToDamaged, IsRenamedAsALink) {
  const Status renamed = rename_file(path("link"), path("other"));
  EXPECT_TRUE(renamed.has_value()) << renamed.error().what;
  EXPECT_EQ(fs::read_symlink(path("other")), "damaged");
}

}  // namespace
}  // namespace shima
