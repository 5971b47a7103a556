// A directory that an I/O node serves, or one below it, is replaced by a link that leads out: the
// node uses the directory that it has found before, or refuses the request.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>

#include "iod/session.h"
#include "striped_world.h"

namespace shima {
namespace {

using remote::Op;
namespace fs = std::filesystem;

const std::string part = std::string(32, 'a') + ".0";

class ReplacedDirectory : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
    for (const char* name : {"served/sub/.shima", "outside/.shima"}) {
      fs::create_directories(path(name));
      ASSERT_TRUE(Target::open_at({"beside", path(name)}, Target::Purpose::create).has_value());
    }
    std::ofstream(path("served/sub/.shima/" + part)) << "inside";
    std::ofstream(path("outside/.shima/" + part)) << "secret";
    served_.push_back(std::make_shared<iod::ServedTarget>());
    served_.front()->place = {"dir", path("served")};
    served_.front()->is_directory = true;
  }

  Result<std::string> ask(Op op, std::vector<std::string> words, std::int64_t first = 0) {
    iod::Buffer data(memory_);
    remote::Request request;
    request.head.op = static_cast<std::uint32_t>(op);
    request.head.first = first;
    request.words = std::move(words);
    SHIMA_TRY(session_.execute(request, data));
    const auto bytes = data.bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  Result<std::string> read_part() {
    SHIMA_TRY(ask(Op::open, {"dir/sub", part}, remote::Opening::read));
    iod::Buffer data(memory_);
    remote::Request request;
    request.head.op = static_cast<std::uint32_t>(Op::read);
    request.runs = {{0, 6}};
    SHIMA_TRY(session_.execute(request, data));
    const auto bytes = data.bytes();
    const std::string found(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SHIMA_TRY(ask(Op::close, {}));
    return found;
  }

  void replace_by_link() {
    fs::rename(path("served/sub"), path("served/moved"));
    fs::create_directory_symlink("../outside", path("served/sub"));
  }

  iod::ServedTargets served_;
  RunMergers mergers_;
  iod::Traffic traffic_;
  iod::Allowance memory_{std::size_t{16} << 20};
  iod::LockHolders lock_holders_;
  std::string client_ = "client";
  iod::Session session_{served_, traffic_, {mergers_, lock_holders_}, client_};
};

TEST_F(ReplacedDirectory, IsUsedAsItWasFound) {
  ASSERT_EQ(read_part().value(), "inside");
  replace_by_link();
  EXPECT_EQ(read_part().value(), "inside");
}

TEST_F(ReplacedDirectory, IsNotFoundThroughALink) {
  replace_by_link();
  EXPECT_EQ(read_part().error().code, Code::access_denied);
}

// A directory and a target may be served that lie below another one.
TEST_F(ReplacedDirectory, IsNotFoundThroughALinkInItsOwnPath) {
  for (const bool is_directory : {true, false}) {
    served_.push_back(std::make_shared<iod::ServedTarget>());
    served_.back()->place = {is_directory ? "deep" : "beside",
                             path(is_directory ? "served/sub" : "served/sub/.shima")};
    served_.back()->is_directory = is_directory;
  }
  EXPECT_TRUE(ask(Op::read_path, {"deep", ".shima/.shima-target"}, 100).has_value());
  EXPECT_TRUE(ask(Op::attach, {"beside", ""}).has_value());
  replace_by_link();
  EXPECT_EQ(ask(Op::read_path, {"deep", ".shima/.shima-target"}, 100).error().code,
            Code::access_denied);
  EXPECT_EQ(ask(Op::attach, {"beside", ""}).error().code, Code::access_denied);
}

TEST_F(ReplacedDirectory, KeepsWhatALinkOfTheClientLeadsTo) {
  ASSERT_TRUE(ask(Op::make_symlink, {"dir", "link", "../outside"}).has_value());
  ASSERT_EQ(fs::read_symlink(path("served/link")), "../outside");
  EXPECT_EQ(ask(Op::read_symlink, {"dir", "link"}).value(), "../outside");
  fs::remove(path("outside/.shima/" + part));  // so that only the target's own file is there
  EXPECT_FALSE(ask(Op::remove_own_directory, {"dir", "link"}).has_value());
  EXPECT_TRUE(fs::exists(path("outside/.shima")));
  EXPECT_FALSE(ask(Op::read_path, {"dir", "link/.shima/.shima-target"}, 100).has_value());
  EXPECT_FALSE(ask(Op::make_symlink, {"dir", "cut", std::string("a\0b", 3)}).has_value());
  EXPECT_FALSE(fs::is_symlink(path("served/cut")));
}

}  // namespace
}  // namespace shima
