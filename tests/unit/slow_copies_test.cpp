// Copies at distances that some processors execute slowly: what is done instead moves the same
// bytes as plain copies and system calls, on every processor.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/copy/bounced_call.h"
#include "base/copy/distance.h"
#include "base/copy/page_bytes.h"
#include "base/unique_fd.h"
#include "ipc/process_vm.h"
#include "store/subfile/posix_subfile.h"
#include "store/subfile/ring.h"
#include "store/subfile/subfile.h"
#include "unit/pattern_model.h"

namespace shima::test {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr bool avoids_slow = true;  // also where this processor copies nothing slowly

std::uintptr_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

std::string random_text(Random& random, std::size_t len_bytes) {
  std::string text(len_bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random.upto(255));
  return text;
}

// Memory at a place in its page that is chosen.
class Memory {
 public:
  Memory(std::size_t len_bytes, std::size_t in_page)
      : pages_(make_page_bytes(len_bytes + page_bytes)),
        bytes_(pages_.get() + in_page),
        len_bytes_(len_bytes) {
    std::memset(bytes_, '.', len_bytes);
  }
  [[nodiscard]] std::byte* at(std::size_t place) const { return bytes_ + place; }
  [[nodiscard]] bool has(const void* place) const {
    return address_of(place) - address_of(bytes_) < len_bytes_;
  }
  [[nodiscard]] std::string text() const {
    return {reinterpret_cast<const char*>(bytes_), len_bytes_};
  }

 private:
  PageBytes pages_;
  std::byte* bytes_;
  std::size_t len_bytes_;
};

// Mostly such that a copy to or from a page's beginning has a slow distance.
std::size_t random_place(Random& random) {
  if (random.one_in(3)) return random.upto(page_bytes - 1);
  return (page_bytes + 40 - random.upto(80)) % page_bytes;
}

// Pieces of the memory from its beginning on, with gaps.
std::vector<iovec> random_pieces(Random& random, const Memory& memory, std::size_t len_bytes) {
  std::vector<iovec> pieces;
  for (std::size_t at = 0; at < len_bytes;) {
    const std::size_t most = random.one_in(4) ? 200'000 : 6000;
    const std::size_t len = std::min<std::size_t>(random.upto(most), len_bytes - at);
    pieces.push_back({memory.at(at), len});
    at += len + (random.one_in(2) ? 0 : random.upto(100));
  }
  return pieces;
}

std::string text_of(const std::vector<iovec>& pieces) {
  std::string text;
  for (const iovec& piece : pieces)
    text.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  return text;
}

class SlowCopies : public testing::Test {
 protected:
  SlowCopies() {
    file_ = UniqueFd(::mkstemp(name_.data()));
    EXPECT_TRUE(file_);
  }
  ~SlowCopies() override { ::unlink(name_.data()); }
  void fill(const std::string& text) const {
    ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
    ASSERT_EQ(::pwrite(file_.get(), text.data(), text.size(), 0), std::ssize(text));
  }
  [[nodiscard]] std::string content() const {
    std::string text(as_unsigned(::lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file_.get(), text.data(), text.size(), 0), std::ssize(text));
    return text;
  }
  [[nodiscard]] std::unique_ptr<Subfile> open() const {
    auto opened = open_subfile(
        {.path = name_.data(), .read = true, .write = true, .avoids_slow = avoids_slow});
    EXPECT_TRUE(opened);
    return opened ? std::move(*opened) : nullptr;
  }

  std::array<char, 32> name_{"copies.XXXXXX"};
  UniqueFd file_;
};

TEST_F(SlowCopies, AreThoseOneToThirtyOneBytesBehind) {
  for (const std::uintptr_t from : {0U, 16U, 4090U}) {
    for (std::uintptr_t distance = 0; distance < page_bytes; ++distance) {
      const std::uintptr_t to = 8 * page_bytes + from + distance;
      EXPECT_EQ(is_slow_distance(to, from, 4096), distance >= 1 && distance <= 31) << distance;
    }
  }
  EXPECT_FALSE(is_slow_distance(16, 0, 1023));
  EXPECT_TRUE(is_slow_distance(16, page_bytes, 1024));
}

TEST_F(SlowCopies, InStepsCopyTheSameBytes) {
  for_each_seed(300, [](Random& random) {
    const std::size_t len = random.upto(10'000);
    const std::string text = random_text(random, len);
    const Memory to(len + 2, random_place(random));
    copy_in_steps(to.at(1), text.data(), len);
    EXPECT_EQ(to.text(), "." + text + ".");
    copy_bytes(to.at(2), text.data(), len);
    EXPECT_EQ(to.text().substr(2), text);
    move_bytes(to.at(0), to.at(2), len);  // they overlap
    EXPECT_EQ(to.text().substr(0, len), text);
    move_bytes(to.at(1), to.at(0), len);
    EXPECT_EQ(to.text().substr(1, len), text);
  });
}

TEST_F(SlowCopies, AreReplacedByTwoThatAreNot) {
  constexpr std::size_t len = 1024;
  const Memory memory(page_bytes, 0);
  for (const Direction direction : {Direction::read, Direction::write}) {
    BounceBuffer buffer(direction, {.avoids_slow = true});
    for (std::size_t own = 0; own < 160; ++own) {
      for (std::uintptr_t other = 0; other < 160; ++other) {
        const iovec piece{memory.at(own), len};
        iovec given = buffer.exchange(piece, other);
        if (given.iov_len < len) {
          buffer.finish(0);
          given = buffer.exchange(piece, other);
        }
        ASSERT_EQ(given.iov_len, len);
        const std::uintptr_t here = address_of(given.iov_base);
        const std::uintptr_t near = address_of(piece.iov_base);
        const bool was_slow = is_slow_distance(direction, near, other, len);
        EXPECT_EQ(given.iov_base != piece.iov_base, was_slow) << own << ' ' << other;
        EXPECT_FALSE(is_slow_distance(direction, here, other, len)) << own << ' ' << other;
        EXPECT_FALSE(was_slow && is_slow_distance(direction, near, here, len))
            << own << ' ' << other;
      }
    }
  }
}

// Counts the calls, and those with other memory than the caller's.
class CountedCalls final : public FileSystemCalls {
 public:
  struct Counts {
    const Memory* memory = nullptr;
    int calls = 0;
    int elsewhere = 0;
  };
  explicit CountedCalls(Counts& counts) : counts_(counts) {}

  ssize_t pwritev(int fd, const iovec* pieces, int count, off_t offset) override {
    note(pieces, count);
    return FileSystemCalls::pwritev(fd, pieces, count, offset);
  }
  ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) override {
    note(pieces, count);
    return FileSystemCalls::preadv(fd, pieces, count, offset);
  }

 private:
  void note(const iovec* pieces, int count) {
    ++counts_.calls;
    for (const iovec& piece : std::span(pieces, static_cast<std::size_t>(count)))
      counts_.elsewhere += counts_.memory->has(piece.iov_base) ? 0 : 1;
  }
  Counts& counts_;
};

TEST_F(SlowCopies, OnlyCachedReadsBecomeSeveralCalls) {
  const Memory memory(300'000, 16);
  CountedCalls::Counts counts{.memory = &memory};
  const auto opened = open_posix_subfile(
      {.path = name_.data(), .read = true, .write = true, .avoids_slow = avoids_slow},
      std::make_unique<CountedCalls>(counts));
  ASSERT_TRUE(opened);
  Subfile& file = **opened;
  const auto expect = [&](const char* what, int calls, int elsewhere) {
    EXPECT_EQ(counts.calls, calls) << what;
    EXPECT_EQ(counts.elsewhere, elsewhere) << what;
    counts.calls = counts.elsewhere = 0;
  };
  // For writes to offset 32 this memory is at a slow distance. One of two writes must win.
  ASSERT_TRUE(file.write({32}, memory.at(0), 300'000));
  expect("a long write", 1, 0);
  ASSERT_TRUE(file.write({32}, memory.at(0), 65536));
  expect("a short write", 1, 1);
  ASSERT_TRUE(file.write({64}, memory.at(0), 65536));
  expect("a write at a fast distance", 1, 0);
  ASSERT_TRUE(file.read({0}, memory.at(0), 65536));
  expect("a short read", 1, 1);
  ASSERT_TRUE(file.read({0}, memory.at(0), 300'000));
  expect("a long read", 5, 5);
  ASSERT_TRUE(file.read({64}, memory.at(0), 200'000));
  expect("a read at a fast distance", 1, 0);
  ASSERT_TRUE(file.sync());
  ASSERT_EQ(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  if (file.cached({0})) GTEST_SKIP() << "this file system keeps its pages";
  ASSERT_TRUE(file.read({0}, memory.at(0), 300'000));
  expect("a read from the disk", 1, 0);
}

TEST_F(SlowCopies, ReadsOfFilesGiveWhatTheyHave) {
  const auto file = open();
  for_each_seed(60, [&](Random& random) {
    const std::string text = random_text(random, random.upto(400'000));
    fill(text);
    const std::size_t len = 1 + random.upto(400'000);
    const Memory memory(len, random_place(random));
    const auto pieces = random_pieces(random, memory, len);
    const std::size_t begin =
        random.one_in(2) ? random.upto(8) * page_bytes : random.upto(text.size() + 100);
    const auto moved = file->read({as_signed(begin)}, pieces);
    std::string rest = begin < text.size() ? text.substr(begin) : std::string();
    std::string expected(len, '.');
    std::size_t count = 0;
    for (const iovec& piece : pieces) {
      const std::size_t part = std::min<std::size_t>(piece.iov_len, rest.size() - count);
      const auto at =
          static_cast<std::size_t>(static_cast<std::byte*>(piece.iov_base) - memory.at(0));
      expected.replace(at, part, rest, count, part);
      count += part;
    }
    ASSERT_TRUE(moved);
    EXPECT_EQ(*moved, count);
    EXPECT_EQ(memory.text(), expected);
  });
}

// Each thread has a buffer of its own.
TEST_F(SlowCopies, ReadsOfSeveralThreadsDoNotMix) {
  std::byte* const own = bounce_memory_of_thread();
  EXPECT_EQ(bounce_memory_of_thread(), own);
  std::jthread([own] { EXPECT_NE(bounce_memory_of_thread(), own); }).join();
  const auto file = open();
  Random for_text(1);
  const std::string text = random_text(for_text, 50 * page_bytes);
  fill(text);
  std::vector<std::jthread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed)
    threads.emplace_back([&, seed] {
      Random random(seed);
      constexpr std::size_t len = 4 * page_bytes;
      const Memory memory(len, 16);
      for (int i = 0; i < 300; ++i) {
        const std::size_t begin = random.upto(45) * page_bytes;
        ASSERT_TRUE(file->read({as_signed(begin)}, memory.at(0), len));
        ASSERT_EQ(memory.text(), text.substr(begin, len));
      }
    });
}

TEST_F(SlowCopies, WritesToFilesGiveWhatTheMemoryHas) {
  const auto file = open();
  for_each_seed(60, [&](Random& random) {
    std::string text = random_text(random, random.upto(300'000));
    fill(text);
    const std::size_t len = 1 + random.upto(300'000);
    const Memory memory(len, random_place(random));
    const std::string source = random_text(random, len);
    std::memcpy(memory.at(0), source.data(), len);
    const auto pieces = random_pieces(random, memory, len);
    const std::size_t begin =
        random.one_in(2) ? random.upto(8) * page_bytes + random.upto(64) : random.upto(text.size());
    const std::string written = text_of(pieces);
    ASSERT_TRUE(file->write({as_signed(begin)}, pieces));
    if (!written.empty() && text.size() < begin + written.size())
      text.resize(begin + written.size(), '\0');
    text.replace(begin, written.size(), written);
    EXPECT_EQ(content(), text);
  });
}

TEST_F(SlowCopies, ErrorsAreThoseOfOneCall) {
  const Memory memory(300'000, 16);
  const iovec all{memory.at(0), 300'000};
  int calls = 0;
  const auto fails_third = [&](const iovec* pieces, int, std::int64_t) -> ssize_t {
    if (++calls < 3) return as_signed(pieces->iov_len);
    errno = EIO;
    return -1;
  };
  BounceBuffer buffer(Direction::read, {.avoids_slow = true});
  const std::size_t portion = BounceBuffer::usual_capacity_bytes;
  const ssize_t moved = call_bounced(buffer, {&all, 1}, 0, fails_third);
  EXPECT_GT(moved, as_signed(2 * (portion - BounceBuffer::most_skipped_bytes) - 1));
  EXPECT_LE(moved, as_signed(2 * portion));
  EXPECT_EQ(call_bounced(buffer, {&all, 1}, 0, fails_third), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(calls, 4);
}

TEST_F(SlowCopies, WritesBeyondALimitFail) {
  const auto file = open();
  const Memory source(60'000, page_bytes - 16);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit least{50'000, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &least), 0);
  const Status written = file->write({0}, source.at(0), 60'000);
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().sys_errno, EFBIG);
  EXPECT_EQ(content(), std::string(50'000, '.'));
}

TEST_F(SlowCopies, RunsThroughTheRingUseABuffer) {
  for_each_seed(20, [this](Random& random) {
    constexpr std::size_t size_bytes = 2'400'000;  // more than the buffer
    std::string text = random_text(random, size_bytes);
    fill(text);
    const bool writing = random.one_in(2);
    const std::size_t run_bytes = random.one_in(3) ? 100'000 : 4096;
    const Memory memory(size_bytes, random_place(random));
    const std::string source = random_text(random, size_bytes);
    if (writing) std::memcpy(memory.at(0), source.data(), source.size());
    std::vector<ApartRun> runs;
    std::vector<iovec> pieces;
    pieces.reserve(2 * (size_bytes / run_bytes));
    std::string expected = memory.text();
    const std::size_t gap_bytes = random.one_in(2) ? 0 : random.upto(5000);
    for (std::size_t at = 0; at + run_bytes <= size_bytes; at += run_bytes + gap_bytes) {
      const std::size_t cut = random.one_in(2) ? 0 : random.upto(run_bytes);
      pieces.push_back({memory.at(at), cut});
      pieces.push_back({memory.at(at + cut), run_bytes - cut});
      runs.push_back({{as_signed(at)}, std::span(pieces).last(2), run_bytes});
      if (writing)
        text.replace(at, run_bytes, source, at, run_bytes);
      else
        expected.replace(at, run_bytes, text, at, run_bytes);
    }
    if (!move_through_ring(file_.get(), runs, writing, avoids_slow))
      GTEST_SKIP() << "no io_uring here";
    EXPECT_EQ(content(), text);
    EXPECT_EQ(memory.text(), writing ? source : expected);
  });
}

TEST_F(SlowCopies, BetweenProcessesUseABuffer) {
  for_each_seed(100, [](Random& random) {
    const std::size_t len = 1 + random.upto(300'000);
    const Memory local(len, random_place(random));
    const Memory remote(len, random_place(random));
    const bool reads = random.one_in(2);
    const std::string source = random_text(random, len);
    std::memcpy((reads ? remote : local).at(0), source.data(), len);
    RemoteTransfer transfer(::getpid(), reads ? Direction::read : Direction::write, avoids_slow);
    std::string expected(len, '.');
    for (std::size_t at = 0; at < len;) {
      const std::size_t part = std::min<std::size_t>(1 + random.upto(70'000), len - at);
      const Status added = transfer.add(address_of(local.at(at)), address_of(remote.at(at)), part);
      ASSERT_TRUE(added);
      expected.replace(at, part, source, at, part);
      at += part + random.upto(50);
    }
    ASSERT_TRUE(transfer.flush());
    EXPECT_EQ((reads ? local : remote).text(), expected);
  });
}

}  // namespace
}  // namespace shima::test
