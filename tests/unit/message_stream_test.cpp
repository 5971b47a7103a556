// Messages in lanes over a connection, and what a peer may not send.
#include "net/message_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <thread>

#include "base/unique_fd.h"

namespace shima {
namespace {

class MessageStreams : public testing::Test {
 protected:
  MessageStreams() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    here_ = UniqueFd(ends[0]);
    there_ = UniqueFd(ends[1]);
  }

  static MessageBuffer text(std::string_view words) {
    MessageBuffer made(words.size());
    std::ranges::copy(std::as_bytes(std::span(words)), made.bytes().begin());
    return made;
  }
  static std::string text_of(const std::optional<MessageBuffer>& message) {
    if (!message) return "none";
    const auto bytes = message->bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // As a peer that does not keep the rules.
  void send_head(std::uint32_t lane, std::uint64_t len_bytes) const {
    const std::array<std::uint64_t, 2> head{lane, len_bytes};
    ASSERT_EQ(::send(here_.get(), head.data(), sizeof head, 0), 16);
  }

  UniqueFd here_;
  UniqueFd there_;
};

TEST_F(MessageStreams, KeepTheOrderOfALane) {
  MessageStream from(here_.get());
  MessageStream to(there_.get());
  from.send(0, text("one"));
  from.send(3, text("other"));
  from.send(0, text(""));
  EXPECT_EQ(from.send(0, text("three")), 3U);
  EXPECT_EQ(from.sent(), 4U);
  const std::uint64_t first = to.expect(0, MessageBuffer(10));
  EXPECT_EQ(text_of(to.take(0, first)), "none");
  EXPECT_TRUE(to.progress());
  EXPECT_FALSE(to.progress());
  EXPECT_TRUE(to.has_unexpected(3));
  const std::uint64_t second = to.expect(0, MessageBuffer(0));
  const std::uint64_t third = to.expect(0, MessageBuffer(5));
  EXPECT_EQ(text_of(to.take(0, third)), "three");
  EXPECT_EQ(text_of(to.take(0, first)), "one");
  EXPECT_EQ(text_of(to.take(0, second)), "");
  EXPECT_EQ(text_of(to.take(3, to.expect(3, MessageBuffer(5)))), "other");
  EXPECT_TRUE(to.status().has_value());
}

TEST_F(MessageStreams, CompleteWhatHasBegunWithoutItsMemory) {
  MessageStream from(here_.get());
  MessageStream to(there_.get());
  std::vector<char> data(3'000'000, 'x');
  const iovec piece{data.data(), data.size()};
  const std::uint64_t number = from.send(1, text("head"), std::span(&piece, 1));
  from.send(1, text("never"), std::span(&piece, 1));
  from.abandon_unsent(data.size());
  from.abandon_unsent(data.size());
  ASSERT_NE(from.events() & 4, 0);  // still waits to send: POLLOUT
  std::ranges::fill(data, 'y');
  EXPECT_EQ(from.send(2, text("end")), number + 1);
  const std::uint64_t begun = to.expect(1, MessageBuffer(data.size() + 4));
  const std::uint64_t never = to.expect(1, MessageBuffer(data.size() + 5));
  const std::uint64_t end = to.expect(2, MessageBuffer(3));
  std::optional<MessageBuffer> last;
  while (!last) {
    from.send_pending();
    to.progress();
    last = to.take(2, end);
  }
  EXPECT_EQ(text_of(last), "end");
  EXPECT_EQ(from.sent(), 2U);
  EXPECT_EQ(text_of(to.take(1, begun)), "head" + std::string(data.size(), 'x'));
  EXPECT_EQ(text_of(to.take(1, never)), "none");
  from.abandon_unsent(data.size());
  EXPECT_TRUE(from.status().has_value());
}

TEST_F(MessageStreams, EndIfThereIsNoRoomToCompleteWhatHasBegun) {
  MessageStream from(here_.get());
  const std::vector<char> data(3'000'000, 'x');
  const iovec piece{const_cast<char*>(data.data()), data.size()};
  from.send(1, text("head"), std::span(&piece, 1));
  ASSERT_NE(from.events() & 4, 0);
  EXPECT_EQ(from.abandon_unsent(1000), 0U);
  ASSERT_FALSE(from.status().has_value());
  EXPECT_EQ(from.status().error().code, Code::no_memory);
  EXPECT_EQ(from.abandon_unsent(data.size()), 0U);  // nothing is left
}

TEST_F(MessageStreams, SendWhatIsElsewhereAndDoesNotFitAtOnce) {
  MessageStream from(here_.get());
  MessageStream to(there_.get());
  std::vector<char> data(3'000'000);
  std::iota(data.begin(), data.end(), char{1});
  std::vector<iovec> pieces;
  for (std::size_t at = 0; at < data.size(); at += 1000) pieces.push_back({&data[at], 1000});
  const std::uint64_t number = from.send(1, text("head"), pieces);
  const std::uint64_t expected = to.expect(1, MessageBuffer(data.size() + 4));
  EXPECT_EQ(from.sent(), number);
  EXPECT_NE(from.events() & 4, 0);  // waits to send: POLLOUT
  std::optional<MessageBuffer> arrived;
  while (!arrived) {
    ASSERT_TRUE(from.progress() || to.progress());
    arrived = to.take(1, expected);
  }
  EXPECT_EQ(from.sent(), number + 1);
  EXPECT_EQ(text_of(arrived), "head" + std::string(data.begin(), data.end()));
}

TEST_F(MessageStreams, GiveWhatHasArrivedAfterTheEnd) {
  MessageStream to(there_.get());
  {
    MessageStream from(here_.get());
    from.send(2, text("last"));
    here_ = UniqueFd();
  }
  const std::uint64_t number = to.expect(2, MessageBuffer(4));
  to.progress();
  ASSERT_FALSE(to.status().has_value());
  EXPECT_EQ(to.status().error().sys_errno, ECONNRESET);
  EXPECT_EQ(text_of(to.take(2, number)), "last");
  EXPECT_EQ(to.events(), 0);
}

TEST_F(MessageStreams, FailIfThePeerSendsWhatNobodyExpects) {
  struct Case {
    std::uint32_t lane;
    std::uint64_t len_bytes;
    bool has_buffer;
  };
  for (const Case& one : {Case{8, 0, false}, Case{0, 65, false}, Case{0, 11, true},
                          Case{1, ~std::uint64_t{0}, false}}) {
    MessageStream to(there_.get());
    if (one.has_buffer) to.expect(one.lane, MessageBuffer(10));
    send_head(one.lane, one.len_bytes);
    to.progress();
    ASSERT_FALSE(to.status().has_value()) << one.lane << ", " << one.len_bytes;
    EXPECT_EQ(to.status().error().sys_errno, EPROTO);
  }
  MessageStream to(there_.get());
  for (int i = 0; i < 9; ++i) send_head(0, 0);
  to.progress();
  EXPECT_FALSE(to.status().has_value());
}

TEST_F(MessageStreams, FailIfAKeptMessageDoesNotFit) {
  MessageStream to(there_.get());
  MessageStream from(here_.get());
  from.send(0, text("seven"));
  to.progress();
  EXPECT_TRUE(to.status().has_value());
  to.expect(0, MessageBuffer(4));
  EXPECT_FALSE(to.status().has_value());
}

}  // namespace
TEST(MessageMemory, IsUsedAgain) {
  MessageMemory memory(1);
  const std::byte* first = nullptr;
  {
    MessageBuffer buffer = memory.buffer(100);
    EXPECT_EQ(buffer.bytes().size(), 100U);
    first = buffer.bytes().data();
  }
  MessageBuffer again = memory.buffer(60);
  EXPECT_EQ(again.bytes().data(), first);
  EXPECT_EQ(again.bytes().size(), 60U);
  EXPECT_EQ(again.capacity_bytes(), 100U);
  MessageBuffer other = memory.buffer(60);
  EXPECT_NE(other.bytes().data(), first);
}

TEST(MessageMemory, ASpareThatIsTooShortIsFreed) {
  MessageMemory memory(2);
  std::ignore = memory.buffer(10);
  MessageBuffer longer = memory.buffer(1000);
  EXPECT_EQ(longer.capacity_bytes(), 1000U);
}

TEST(MessageMemory, BuffersMayOutliveIt) {
  MessageBuffer buffer;
  {
    MessageMemory memory(1);
    buffer = memory.buffer(10);
  }
  buffer.bytes()[9] = std::byte{1};
  std::thread([moved = std::move(buffer)] { EXPECT_EQ(moved.bytes()[9], std::byte{1}); }).join();
}

}  // namespace shima
