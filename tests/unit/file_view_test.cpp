// A part of a file in the page cache: which parts can be viewed, and sent, also if the file is
// truncated meanwhile.
#include "base/file_view.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/unique_fd.h"
#include "net/message_stream.h"

namespace shima {
namespace {

constexpr std::int64_t size_bytes = 300'000;

TargetRange range(std::int64_t begin, std::int64_t end) { return {{begin}, {end}}; }

class FileViews : public testing::Test {
 protected:
  FileViews() {
    std::array<char, 32> name{"view.XXXXXX"};
    file_ = UniqueFd(::mkstemp(name.data()));
    ::unlink(name.data());
    text_.resize(size_bytes);
    for (std::size_t i = 0; i < text_.size(); ++i) text_[i] = static_cast<char>(i * 7 + i / 251);
    EXPECT_EQ(::pwrite(file_.get(), text_.data(), text_.size(), 0), size_bytes);
  }
  [[nodiscard]] std::unique_ptr<FileView> view(std::int64_t begin, std::int64_t end) const {
    return FileView::of_cached(file_.get(), range(begin, end));
  }

  UniqueFd file_;
  std::string text_;
};

TEST_F(FileViews, HaveTheBytesOfTheFile) {
  for (const auto& [begin, end] :
       {std::pair{0, 1}, {0, 4096}, {4095, 4097}, {8192, 300'000}, {299'999, 300'000}}) {
    const auto seen = view(begin, end);
    ASSERT_TRUE(seen) << begin;
    const auto len = static_cast<std::size_t>(end - begin);
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(seen->data()), len),
              std::string_view(text_).substr(static_cast<std::size_t>(begin), len));
  }
}

TEST_F(FileViews, ShowWhatIsWrittenMeanwhile) {
  const auto seen = view(5000, 6000);
  ASSERT_TRUE(seen);
  ASSERT_EQ(::pwrite(file_.get(), "new", 3, 5001), 3);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(seen->data()) + 1, 3), "new");
}

TEST_F(FileViews, EndWithTheFile) {
  EXPECT_FALSE(view(0, size_bytes + 1));
  EXPECT_FALSE(view(size_bytes, size_bytes + 1));
  EXPECT_FALSE(view(100, 100));
}

TEST_F(FileViews, AreOfPagesInMemory) {
  ASSERT_EQ(::fsync(file_.get()), 0);
  ASSERT_EQ(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  std::byte first{};
  const iovec piece{&first, 1};
  if (::preadv2(file_.get(), &piece, 1, 100'000, RWF_NOWAIT) == 1)
    GTEST_SKIP() << "the file system keeps its pages in memory";
  EXPECT_FALSE(view(100'000, 200'000));
  ASSERT_EQ(::pread(file_.get(), text_.data(), text_.size(), 0), size_bytes);
  EXPECT_TRUE(view(100'000, 200'000));
}

TEST_F(FileViews, CannotBeMadeOfAFileThatMayNotBeRead) {
  const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
  const UniqueFd write_only(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(write_only);
  EXPECT_FALSE(FileView::of_cached(write_only.get(), range(0, 10)));
}

class SentViews : public FileViews {
 protected:
  SentViews() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_ = UniqueFd(ends[0]);
    there_ = UniqueFd(ends[1]);
    constexpr int small_bytes = 4096;  // so that much has not been sent
    ::setsockopt(here_.get(), SOL_SOCKET, SO_SNDBUF, &small_bytes, sizeof small_bytes);
  }
  // Begins to send the file.
  void begin(MessageStream& from) {
    seen_ = view(0, size_bytes);
    ASSERT_TRUE(seen_);
    const iovec piece{seen_->data(), size_bytes};
    from.send(1, MessageBuffer(0), std::span(&piece, 1));
    ASSERT_NE(from.events() & POLLOUT, 0);
  }
  // What arrives; empty if the stream fails.
  std::string received(MessageStream& from) const {
    MessageStream to(there_.get());
    const std::uint64_t number = to.expect(1, MessageBuffer(size_bytes));
    std::optional<MessageBuffer> message;
    while (!message && from.status()) {
      from.send_pending();
      to.progress();
      message = to.take(1, number);
    }
    if (!message) return {};
    return {reinterpret_cast<const char*>(message->bytes().data()), message->bytes().size()};
  }
  void cut() const { ASSERT_EQ(::ftruncate(file_.get(), 250'000), 0); }

  UniqueFd here_;
  UniqueFd there_;
  std::unique_ptr<FileView> seen_;
};

TEST_F(SentViews, HaveTheBytesOfTheFile) {
  MessageStream from(here_.get());
  begin(from);
  EXPECT_EQ(received(from), text_);
}

TEST_F(SentViews, FailIfTheFileHasBeenTruncated) {
  MessageStream from(here_.get());
  begin(from);
  cut();
  EXPECT_EQ(received(from), "");
  ASSERT_FALSE(from.status());
  EXPECT_EQ(from.status().error().sys_errno, EFAULT);
}

TEST_F(SentViews, AreCompletedFromACopy) {
  MessageStream from(here_.get());
  begin(from);
  EXPECT_GT(from.abandon_unsent(size_bytes), 0U);
  seen_.reset();
  EXPECT_EQ(received(from), text_);
}

TEST_F(SentViews, AreNotCompletedIfTheFileHasBeenTruncated) {
  MessageStream from(here_.get());
  begin(from);
  cut();
  EXPECT_EQ(from.abandon_unsent(size_bytes), 0U);
  ASSERT_FALSE(from.status());
  EXPECT_EQ(from.status().error().code, Code::no_memory);
}

}  // namespace
}  // namespace shima
