// Clients of an I/O node that do not behave are dropped with one line, and others are served; an
// idle daemon does nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "iod_world.h"
#include "net/key_proof.h"
#include "net/wire.h"
#include "store/remote/connection.h"
#include "store/remote/message.h"
#include "store/remote/remote_files.h"

namespace shima {
namespace {

using remote::Op;
using remote::Request;
using std::chrono::milliseconds;

UniqueFd connect_to_port(const std::string& port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  return socket;
}

// Until the end of the connection.
void hear_all(int socket) {
  std::array<char, 65536> heard{};
  while (::recv(socket, heard.data(), heard.size(), 0) > 0) {
  }
}

class IodClients : public IodWorld {
 protected:
  void SetUp() override {
    IodWorld::SetUp();
    make("d/f", {{{0}, 4096, {"a"}}}, some_bytes(100'000, 1));
    stop(0);
    auto wanted = options(0);
    wanted.message_timeout = milliseconds(200);
    wanted.handshake_timeout = milliseconds(200);
    wanted.crowded_timeout = milliseconds(50);
    wanted.most_strangers = 4;
    wanted.memory_of_key_bytes = std::size_t{4} << 20;
    auto started = iod::Daemon::start(wanted);
    ASSERT_TRUE(started.has_value()) << describe(started.error());
    nodes_[0] = *std::move(started);
    for (const auto& entry : std::filesystem::directory_iterator(path("target-a")))
      if (entry.path().extension() == ".0") part_ = entry.path().filename();
  }

  // A connection that has proved the key, and opened the part of d/f.
  UniqueFd client() {
    UniqueFd socket = connect_to_port(ports_[0]);
    const Key key = read_key(path("key")).value();
    EXPECT_TRUE(prove_to_server(socket.get(), key, remote::spoken).has_value());
    Request open = request(Op::open, 1);
    open.head.first = remote::Opening::read | remote::Opening::write;
    open.words = {"a", part_};
    say(socket, open);
    std::array<char, sizeof(remote::ReplyHead) + sizeof(remote::Facts)> reply{};
    EXPECT_TRUE(receive_all(socket.get(), reply.data(), reply.size()));
    return socket;
  }
  static Request request(Op op, std::uint32_t serial) {
    Request made;
    made.head.op = static_cast<std::uint32_t>(op);
    made.head.serial = serial;
    return made;
  }
  static bool say(const UniqueFd& socket, const Request& request, std::uint64_t data_bytes = 0) {
    const auto bytes = encode(request, data_bytes);
    return send_all(socket.get(), bytes.data(), bytes.size());
  }
  // What the daemon logs until it has dropped the client.
  template <class Misbehave>
  std::string log_of(Misbehave misbehave) {
    testing::internal::CaptureStderr();
    {
      const UniqueFd socket = client();
      misbehave(socket);
      hear_all(socket.get());
    }
    EXPECT_EQ(contents("d/f"), some_bytes(100'000, 1));
    return testing::internal::GetCapturedStderr();
  }

  std::string part_;
};

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++count;
  return count;
}

// One line, which has the text.
testing::AssertionResult is_line(const std::string& log, const std::string& text) {
  const bool is_it = std::ranges::count(log, '\n') == 1 && log.find("dropped") != log.npos &&
                     log.find(text) != log.npos;
  return is_it ? testing::AssertionSuccess() : testing::AssertionFailure() << "logged: " << log;
}

TEST_F(IodClients, AreDroppedWithALine) {
  EXPECT_TRUE(is_line(log_of([](const UniqueFd& socket) {
                        say(socket, request(Op::size, 2));
                        say(socket, request(Op::size, 2));
                      }),
                      "a repeated or omitted request"));
  EXPECT_TRUE(is_line(log_of([](const UniqueFd& socket) {
                        Request large = request(Op::read, 2);
                        large.runs = {{0, remote::most_data_bytes}, {0, 1}};
                        say(socket, large);
                      }),
                      "runs of too many bytes"));
  EXPECT_TRUE(is_line(log_of([](const UniqueFd& socket) {
                        Request large = request(Op::write, 2);
                        large.runs = {{0, 1}};
                        say(socket, large, std::uint64_t{1} << 40);
                      }),
                      "too many data"));
  EXPECT_TRUE(is_line(log_of([](const UniqueFd& socket) {
                        Request short_one = request(Op::write, 2);
                        short_one.runs = {{200'000, 100}};
                        say(socket, short_one, 100);  // and no data
                      }),
                      "ETIMEDOUT"));
  EXPECT_TRUE(is_line(log_of([](const UniqueFd& socket) {
                        Request unknown = request(static_cast<Op>(1000), 2);
                        say(socket, unknown);
                      }),
                      "no such request"));
}

// Overlapping runs are done in their order, within what one message may hold.
TEST_F(IodClients, MayOverlapTheirRuns) {
  auto connection = remote::Connection::open(nodes_[0]->address(), path("key"));
  ASSERT_TRUE(connection.has_value());
  Request open = request(Op::open, 0);
  open.head.first = remote::Opening::read | remote::Opening::write;
  open.words = {"a", part_};
  std::vector<std::byte> facts;
  require(status_of((*connection)->call(open, facts, sizeof(remote::Facts))));
  Request write = request(Op::write, 0);
  write.runs = {{0, 4}, {2, 4}};
  require(status_of((*connection)->call(write, std::as_bytes(std::span("abcdefgh", 8)))));
  Request read = request(Op::read, 0);
  read.runs = {{0, 6}, {1, 2}};
  std::vector<std::byte> answer;
  require(status_of((*connection)->call(read, answer, 8)));
  EXPECT_EQ(std::memcmp(answer.data(), "abefghbe", 8), 0);
}

// Linked requests are those of a create that has failed; the first has not been executed either.
TEST_F(IodClients, ThatHaveLeftChangeNothingMore) {
  {
    const UniqueFd socket = client();
    Request remove = request(Op::remove, 2);
    remove.head.flags = remote::Flag::linked;
    remove.words = {"a", part_};
    Request again = request(Op::remove, 3);
    again.words = remove.words;
    std::vector<std::byte> both = encode(remove, 0);
    const std::vector<std::byte> second = encode(again, 0);
    both.insert(both.end(), second.begin(), second.end());
    // The end of the connection travels in one packet with them.
    ASSERT_EQ(::send(socket.get(), both.data(), both.size(), MSG_MORE),
              static_cast<ssize_t>(both.size()));
  }
  while (count_of(nodes_[0]->status(), "client 127") > 0) ::usleep(1000);
  EXPECT_EQ(contents("d/f"), some_bytes(100'000, 1));
}

// It uses up the key's memory, and takes no replies.
TEST_F(IodClients, ThatReadNothingKeepNoneFromReading) {
  testing::internal::CaptureStderr();
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(client());
    Request read = request(Op::read, 0);
    for (int run = 0; run < 20; ++run) read.runs.push_back({0, 100'000});
    const UniqueFd& socket = sockets.back();
    const timeval limit{0, 50'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    for (std::uint32_t serial = 2; serial < 60; ++serial) {
      read.head.serial = serial;
      if (!say(socket, read)) break;
    }
  }
  EXPECT_EQ(contents("d/f"), some_bytes(100'000, 1));
  // All four are dropped: what is left are the connections of this process that are not in use.
  for (int i = 0; i < 500 && count_of(nodes_[0]->status(), "client 127") > 0; ++i) ::usleep(10'000);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 4) << log;
}

TEST_F(IodClients, ThatProveNothingKeepNoneFromConnecting) {
  testing::internal::CaptureStderr();
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) strangers.push_back(connect_to_port(ports_[0]));
  EXPECT_EQ(contents("d/f"), some_bytes(100'000, 1));
  for (const UniqueFd& stranger : strangers) hear_all(stranger.get());
  testing::internal::GetCapturedStderr();
}

// --- an idle daemon -----------------------------------------------------------------------------

// How often threads of this process other than this one have slept or been preempted.
std::uint64_t switches() {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::syscall(SYS_gettid))) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.find("ctxt_switches:") != std::string::npos)
        sum += std::stoul(line.substr(line.find(':') + 1));
  }
  return sum;
}

TEST_F(IodClients, LeaveADaemonIdleThatAskNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer has a thread that wakes up";
#endif
  auto file = LogicalFile::open({.path = path("d/f"), .read = true});
  ASSERT_TRUE(file.has_value());
  char byte = 0;
  EXPECT_EQ(file->read(FileOffset{0}, &byte, 1).value(), 1U);
  ::usleep(1'500'000);  // the memory for messages is given back after a second
  const std::string status = nodes_[0]->status();
  EXPECT_NE(status.find(" 0 of 4194304 bytes of memory"), std::string::npos) << status;
  const std::uint64_t before = switches();
  ::usleep(1'000'000);
  EXPECT_EQ(switches(), before);
  EXPECT_EQ(file->read(FileOffset{1}, &byte, 1).value(), 1U);
  EXPECT_GT(switches(), before);
}

}  // namespace
}  // namespace shima
