// A subfile that was written or read through io_uring is closed: nothing keeps it open any more, so
// a restripe that follows gets its leases. Before, the closed ring kept the file for a moment.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "store/striped/restripe.h"
#include "store/target/local_files.h"
#include "striped_world.h"

namespace shima {
namespace {

constexpr std::size_t run_count = 64;
constexpr std::size_t run_bytes = 4096;

class LeaseAfterRing : public StripedWorld {
 protected:
  void SetUp() override {
    StripedWorld::SetUp();
    new_world();
  }
  // Every second block, by one request of many runs; false if there is no ring.
  template <class File, class Run, class Offset>
  bool move(File& file, bool writing) {
    std::vector<iovec> pieces(run_count);
    std::vector<Run> runs;
    for (std::size_t i = 0; i < run_count; ++i) {
      pieces[i] = {bytes_.data() + i * run_bytes, run_bytes};
      runs.push_back({Offset{as_signed(2 * i * run_bytes)}, {&pieces[i], 1}, run_bytes});
    }
    return file.move_apart(runs, writing);
  }

  Bytes bytes_ = some_bytes(run_count * run_bytes, 1);
};

TEST_F(LeaseAfterRing, IsGranted) {
  UniqueFd directory(::open(path("d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto files = local_files(std::move(directory), path("d"));
  require(files->make("f", 0600));
  for (int round = 0; round < 100; ++round) {
    const bool writing = round % 2 == 0;
    const auto file = files->open("f", {.path = {}, .read = true, .write = true});
    ASSERT_TRUE(file.has_value()) << describe(file.error());
    const bool moved = move<Subfile, ApartRun, TargetOffset>(**file, writing);
    require((*file)->close());
    if (!moved) GTEST_SKIP() << "no io_uring here";
    const auto lease = files->lease("f", TargetFiles::Sole::yes);
    if (!lease && lease.error().code == Code::unsupported_operation)
      GTEST_SKIP() << "no leases here";
    ASSERT_TRUE(lease.has_value()) << "round " << round << ": " << describe(lease.error());
  }
}

TEST_F(LeaseAfterRing, LetsARestripeBegin) {
  make("d/f", three, {});
  const Regions regions[] = {cut, three};
  for (int round = 0; round < 20; ++round) {
    auto file = LogicalFile::open({.path = path("d/f"), .read = true, .write = true});
    ASSERT_TRUE(file.has_value()) << describe(file.error());
    const bool moved = move<LogicalFile, LogicalRun, FileOffset>(*file, true);
    require(file->close());
    if (!moved) GTEST_SKIP() << "no io_uring here";
    require(restripe({.path = path("d/f"), .regions = regions[round % 2]}, {}));
  }
}

}  // namespace
}  // namespace shima
