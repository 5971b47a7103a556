// A node leader without memory for the thread that watches its node told the hub that it had
// joined, and closed the connection: the other nodes took it for lost and left a collective open,
// in which the leader's node then waited forever.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "group/liveness/hub.h"
#include "group/liveness/lookout.h"

namespace {

// How many more allocations of this thread succeed; negative: all.
thread_local int allocations_left = -1;

}  // namespace

// Out of the compiler's sight: it would take the pair for a mismatch of new and free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace shima {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Words {
  std::atomic<std::uint32_t> left{0};
  std::atomic<std::uint32_t> lost{0};
};

WatchedNode node_of(Words& words, std::uint32_t rank) {
  return {{{rank, ProcessIdentity::own(), &words.left}}, 0, &words.lost, nullptr};
}

UniqueFd connect(const Hub& hub) {
  auto socket = connect_to(hub.address(), milliseconds(30'000));
  EXPECT_TRUE(socket.has_value()) << socket.error().what;
  return *std::move(socket);
}

TEST(Lookout, WithoutMemoryIsNoLoss) {
  const auto hub = Hub::start(shared_with({}, {}), seconds(10)).value();
  std::array<Words, 2> words;
  const auto other = Lookout::start(node_of(words[1], 1), connect(*hub)).value();
  bool started = false;
  for (int allocations = 0; !started; ++allocations) {
    ASSERT_LT(allocations, 100);
    UniqueFd connection = connect(*hub);
    const auto tried = caught([&] {
      WatchedNode node = node_of(words[0], 0);
      allocations_left = allocations;
      return Lookout::start(std::move(node), std::move(connection));
    });
    allocations_left = -1;
    started = tried.has_value();
    // What a loss that does not happen gets as time to be seen.
    if (!started) std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(words[1].lost, 0U) << allocations;
  }
}

}  // namespace
}  // namespace shima
