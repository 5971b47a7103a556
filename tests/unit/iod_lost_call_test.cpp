// A file whose I/O node was lost in a collective call asks that node for nothing more, although
// the file's own connection to it still works.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <vector>

#include "iod_world.h"
#include "store/striped/logical_file.h"

namespace shima {
namespace {

Code code_of(const auto& result) { return result ? Code::ok : result.error().code; }

class IodLostCall : public IodWorld {
 protected:
  void SetUp() override {
    IodWorld::SetUp();
    make("d/f", {{{0}, 4096, {"a", "b"}}}, some_bytes(100'000, 1));
    file_.emplace(LogicalFile::open({.path = path("d/f"), .read = true, .write = true}).value());
  }
  void TearDown() override {
    file_.reset();
    IodWorld::TearDown();
  }

  void lose(int subfile) {
    const DirectedCall call{.id = 1,
                            .participants = 2,
                            .writes = 1,
                            .window_bytes = 4096,
                            .granule_bytes = 4096,
                            .range = {{0}, {8192}}};
    auto part = file_->join(subfile, call);
    ASSERT_TRUE(part.has_value()) << describe(part.error());
    std::ignore = (*part)->lose(ETIMEDOUT);
  }
  // What a node has counted of its target.
  [[nodiscard]] std::string traffic(std::size_t node) const {
    const std::string status = nodes_[node]->status();
    const std::size_t at = status.find("target ");
    return status.substr(at, status.find('\n', at) - at);
  }

  std::optional<LogicalFile> file_;
};

TEST_F(IodLostCall, IsAnErrorOfAllThatNeedsTheNode) {
  std::vector<char> bytes(20'000);  // on both nodes
  const iovec piece{bytes.data(), bytes.size()};
  const std::vector<std::function<Code()>> calls{
      [&] { return code_of(file_->write(FileOffset{0}, std::span(&piece, 1))); },
      [&] { return code_of(file_->read(FileOffset{0}, std::span(&piece, 1))); },
      [&] { return code_of(file_->size()); },
      [&] { return code_of(file_->sync()); },
      [&] { return code_of(file_->write(FileOffset{4096}, std::span(&piece, 1))); },
      [&] {
        file_->will_need({{0}, {20'000}});
        return Code::io;
      },
  };
  for (const auto& call : calls) EXPECT_EQ(call(), &call == &calls.back() ? Code::io : Code::ok);
  lose(1);
  while (traffic(1).find(" 1 open files") == std::string::npos) ::usleep(1000);
  ::usleep(50'000);  // earlier advice
  const std::string before = traffic(1);
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i](), Code::io) << i;
  ::usleep(100'000);  // advice that the node has not taken yet
  EXPECT_EQ(traffic(1), before);
}

}  // namespace
}  // namespace shima
