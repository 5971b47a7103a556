// The allocator of memory that several address spaces share: against a model, by threads, and by
// processes that are killed during a call.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "pvas/shared/share_heap.h"

namespace shima::pvas {
namespace {

constexpr std::size_t chunks = 2048;

// A heap in an anonymous file, as a group of spaces has one.
class ShareHeaps : public testing::Test {
 protected:
  struct Head {
    HeapHead head;
    std::array<ChunkState, chunks> states;
    std::array<SlabBits, chunks> bits;
  };
  static constexpr std::size_t head_bytes = (sizeof(Head) + 4095) & ~std::size_t{4095};
  static constexpr std::size_t bytes = head_bytes + chunks * chunk_bytes;

  void SetUp() override {
    file_ = UniqueFd(memfd_create("heap", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(bytes)), 0);
    void* const all =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
    ASSERT_NE(all, MAP_FAILED);
    head_ = static_cast<Head*>(all);
    memory_ = static_cast<std::byte*>(all) + head_bytes;
  }
  void TearDown() override { munmap(head_, bytes); }

  ShareHeap heap() { return {head_->head, head_->states, head_->bits.data(), memory_}; }

  // The number of chunks that an empty heap can allocate as one piece.
  std::size_t largest_run() {
    for (std::size_t run = chunks; run > 0; --run)
      if (const auto got = heap().take(run * chunk_bytes)) {
        EXPECT_TRUE(heap().give(*got));
        return run;
      }
    return 0;
  }

  std::size_t pages_bytes() const {
    struct stat info{};
    fstat(file_.get(), &info);
    return static_cast<std::size_t>(info.st_blocks) * 512;
  }

  UniqueFd file_;
  Head* head_ = nullptr;
  std::byte* memory_ = nullptr;
};

// Allocates and frees at random; an allocation is filled, and must be unchanged when it is freed.
class Trader {
 public:
  Trader(ShareHeap heap, unsigned seed) : heap_(heap), random_(seed) {}

  void trade(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      if (held_.size() < 60 && random_() % 2 == 0) {
        take();
      } else if (!held_.empty()) {
        give(random_() % held_.size());
      }
    }
  }
  void finish() {
    while (!held_.empty()) give(held_.size() - 1);
  }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  struct Piece {
    unsigned char* bytes;
    std::size_t size;
    unsigned char filling;
  };

  void take() {
    const std::size_t size = random_() % 10 == 0 ? 1 + random_() % (5 * chunk_bytes)
                                                 : std::size_t{1} << (random_() % 12);
    const auto got = heap_.take(size);
    if (!got) return;  // full at present
    const auto filling = static_cast<unsigned char>(random_());
    std::memset(*got, filling, size);
    held_.push_back({static_cast<unsigned char*>(*got), size, filling});
  }
  void give(std::size_t at) {
    const Piece piece = held_[at];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    if (std::count(piece.bytes, piece.bytes + piece.size, piece.filling) !=
        static_cast<std::ptrdiff_t>(piece.size))
      ++wrong_;
    if (!heap_.give(piece.bytes)) ++wrong_;
  }

  ShareHeap heap_;
  std::mt19937 random_;
  std::vector<Piece> held_;
  int wrong_ = 0;
};

TEST_F(ShareHeaps, PiecesAreApartAndAligned) {
  std::map<std::byte*, std::size_t> pieces;
  std::size_t sum = 0;
  for (std::size_t size = 1; size < 3 * chunk_bytes; size += size / 3 + 1) {
    for (int i = 0; i < 5; ++i) {
      const auto got = heap().take(size);
      ASSERT_TRUE(got);
      const auto alignment = std::min(std::bit_ceil(std::max(size, smallest_slot)), chunk_bytes);
      EXPECT_EQ((static_cast<std::byte*>(*got) - memory_) % static_cast<std::ptrdiff_t>(alignment),
                0);
      EXPECT_TRUE(pieces.emplace(static_cast<std::byte*>(*got), size).second);
      sum += size;
    }
  }
  EXPECT_GT(sum, 5 * chunk_bytes);
  std::byte* end = memory_;
  for (const auto& [begin, size] : pieces) {
    EXPECT_GE(begin, end);
    end = begin + size;
  }
  EXPECT_LE(end, memory_ + chunks * chunk_bytes);
}

TEST_F(ShareHeaps, IsAsLargeAsItIsAndNoLarger) {
  EXPECT_EQ(heap().take(0).error().code, Code::bad_argument);
  EXPECT_EQ(heap().take(chunks * chunk_bytes + 1).error().code, Code::no_memory);
  const auto all = heap().take(chunks * chunk_bytes);
  ASSERT_TRUE(all);
  EXPECT_EQ(heap().take(1).error().code, Code::no_memory);
  EXPECT_TRUE(heap().give(*all));
  // The same with the smallest slots: every one of them is allocated.
  std::vector<void*> slots;
  for (std::size_t i = 0; i < 3 * chunk_bytes / smallest_slot; ++i) {
    const auto slot = heap().take(smallest_slot);
    ASSERT_TRUE(slot);
    slots.push_back(*slot);
  }
  std::ranges::sort(slots);
  EXPECT_EQ(std::ranges::adjacent_find(slots), slots.end());
  EXPECT_EQ(static_cast<std::byte*>(slots.back()) - static_cast<std::byte*>(slots.front()),
            static_cast<std::ptrdiff_t>(3 * chunk_bytes - smallest_slot));
  EXPECT_EQ(largest_run(), chunks - 3);
  for (void* const slot : slots) EXPECT_TRUE(heap().give(slot));
  EXPECT_GE(largest_run(), chunks - 3);
}

TEST_F(ShareHeaps, OnlyWhatWasTakenIsGiven) {
  const auto slot = heap().take(100);
  const auto run = heap().take(3 * chunk_bytes);
  ASSERT_TRUE(slot && run);
  auto* const in_run = static_cast<std::byte*>(*run);
  std::byte here{};
  for (void* const wrong :
       {static_cast<void*>(&here), static_cast<void*>(memory_ - 1),
        static_cast<void*>(memory_ + chunks * chunk_bytes),
        static_cast<void*>(static_cast<std::byte*>(*slot) + 1),
        static_cast<void*>(static_cast<std::byte*>(*slot) + 128), static_cast<void*>(in_run + 1),
        static_cast<void*>(in_run + chunk_bytes), static_cast<void*>(in_run + 3 * chunk_bytes)})
    EXPECT_EQ(heap().give(wrong).error().code, Code::bad_argument);
  EXPECT_TRUE(heap().give(*slot));
  EXPECT_TRUE(heap().give(*run));
  EXPECT_EQ(heap().give(*slot).error().code, Code::bad_argument);
  EXPECT_EQ(heap().give(*run).error().code, Code::bad_argument);
}

TEST_F(ShareHeaps, PagesGoWithWhatWasInThem) {
  const std::size_t before = pages_bytes();
  const auto run = heap().take(40 * chunk_bytes);
  ASSERT_TRUE(run);
  std::memset(*run, 1, 40 * chunk_bytes);
  EXPECT_GE(pages_bytes(), before + 40 * chunk_bytes);
  EXPECT_TRUE(heap().give(*run));
  EXPECT_LT(pages_bytes(), before + chunk_bytes);
  const auto again = heap().take(40 * chunk_bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *run);
  EXPECT_EQ(*static_cast<char*>(*again), 0);
}

TEST_F(ShareHeaps, ThreadsTakeAndGive) {
  std::vector<Trader> traders;
  for (unsigned t = 0; t < 4; ++t) traders.emplace_back(heap(), t);
  std::vector<std::thread> threads;
  for (Trader& trader : traders)
    threads.emplace_back([&] {
      trader.trade(20000);
      trader.finish();
    });
  for (std::thread& thread : threads) thread.join();
  for (const Trader& trader : traders) EXPECT_EQ(trader.wrong(), 0);
  // At most the last slab of each size is kept.
  EXPECT_GE(largest_run(), (chunks - slot_sizes) / (slot_sizes + 1));
  std::size_t taken = 0;
  for (const ChunkState& state : head_->states) taken += state != 0 ? 1 : 0;
  EXPECT_LE(taken, slot_sizes);
}

TEST_F(ShareHeaps, ProcessesThatAreKilledLeaveItUsable) {
  constexpr int victims = 40;
  Trader own(heap(), 1);
  for (unsigned victim = 0; victim < victims; ++victim) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Trader trader(heap(), 100 + victim);
      for (;;) trader.trade(1000);
    }
    own.trade(300);
    usleep(1000 * (victim % 5));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    own.trade(300);
    ASSERT_EQ(own.wrong(), 0);
  }
  own.finish();
  EXPECT_EQ(own.wrong(), 0);
  EXPECT_TRUE(heap().take(4 * chunk_bytes)) << "the dead have taken nearly all";
}

}  // namespace
}  // namespace shima::pvas
