// A collective call that an I/O node directs begins although the node has not confirmed the advice
// to read ahead; but not after the end of the file's own connection, even if that is behind such a
// confirmation.
#include <gtest/gtest.h>
#include <unistd.h>

#include "iod_world.h"
#include "store/striped/logical_file.h"

namespace shima {
namespace {

class AdviceThenCollective : public IodWorld {
 protected:
  static Status join(LogicalFile& file) {
    const DirectedCall call{.id = 1,
                            .participants = 2,
                            .writes = 0,
                            .window_bytes = 4096,
                            .granule_bytes = 4096,
                            .range = {{0}, {8192}}};
    for (int subfile = 0; subfile < 2; ++subfile) SHIMA_TRY(status_of(file.join(subfile, call)));
    return {};
  }
};

TEST_F(AdviceThenCollective, BeginsWhileTheNodeIsThere) {
  make("d/f", {{{0}, 4096, {"a", "b"}}}, some_bytes(100'000, 1));
  auto file = LogicalFile::open({.path = path("d/f"), .read = true}).value();
  for (int i = 0; i < 3; ++i) {
    file.will_need({{0}, {100'000}});
    ::usleep(i * 10'000);  // the confirmation is on the way, or has arrived
    const Status joined = join(file);
    EXPECT_TRUE(joined.has_value()) << describe(joined.error());
  }
  file.will_need({{0}, {100'000}});
  stop(1);
  start(1);
  EXPECT_FALSE(join(file).has_value());
}

}  // namespace
}  // namespace shima
