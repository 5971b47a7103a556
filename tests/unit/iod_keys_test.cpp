// I/O nodes with keys of several users: who acts as whom, on which targets; what is refused; turns
// and memory.
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <thread>

#include "iod/allowance.h"
#include "iod/fair_queue.h"
#include "iod/key_ring.h"
#include "iod_world.h"
#include "store/remote/connection.h"
#include "store/remote/remote_files.h"

namespace shima {
namespace {

using remote::Op;
using remote::Request;

// --- turns and memory ---------------------------------------------------------------------------

// Threads that enter in this order while the only place is taken; what they note is the order in
// which they are admitted.
std::string order_of(const std::vector<iod::FairQueue::Process>& processes) {
  iod::FairQueue queue(1);
  std::string order;
  std::vector<std::thread> threads;
  {
    const iod::FairQueue::Process first{"z", "z"};
    const auto place = queue.enter(first);
    for (const auto& process : processes) {
      threads.emplace_back([&queue, &order, &process] {
        const auto own = queue.enter(process);
        order += process.user + process.name + " ";
      });
      while (queue.load().waiting < threads.size()) ::usleep(100);
    }
  }
  for (std::thread& thread : threads) thread.join();
  return order;
}

TEST(IodQueue, AdmitsUsersAndTheirProcessesInTurn) {
  EXPECT_EQ(order_of({{"a", "1"}, {"a", "1"}, {"a", "1"}, {"a", "2"}, {"b", "1"}}),
            "a1 b1 a2 a1 a1 ");
}

TEST(IodQueue, LeavesRoomForOthers) {
  iod::FairQueue queue(4);
  const iod::FairQueue::Process one{"a", "1"};
  const iod::FairQueue::Process other{"b", "1"};
  auto place = std::unique_ptr<iod::FairQueue::Place>(new iod::FairQueue::Place(queue.enter(one)));
  std::atomic<bool> has_second = false;
  std::thread waits([&] {
    const auto second = queue.enter(one);
    has_second = true;
  });
  while (queue.load().waiting == 0) ::usleep(100);
  {
    const auto third = queue.enter(other);  // does not wait
    EXPECT_EQ(queue.load().under_way, 2U);
  }
  EXPECT_FALSE(has_second);
  place.reset();
  waits.join();
  EXPECT_TRUE(has_second);
}

TEST(IodMemory, IsBounded) {
  iod::Allowance memory(100);
  iod::Buffer first(memory);
  std::ignore = first.take(60);
  std::atomic<int> got = 0;
  std::thread large([&] {
    iod::Buffer buffer(memory);
    std::ignore = buffer.take(80);
    ++got;
  });
  while (!memory.is_short()) ::usleep(100);
  std::thread small([&] {
    iod::Buffer buffer(memory);
    std::ignore = buffer.take(10);  // after the large one, which would wait for ever otherwise
    ++got;
  });
  ::usleep(5000);
  EXPECT_EQ(got, 0);
  EXPECT_EQ(memory.used_bytes(), 60U);
  first.release();
  large.join();
  small.join();
  EXPECT_EQ(got, 2);
  EXPECT_EQ(memory.used_bytes(), 0U);
}

// --- keys ---------------------------------------------------------------------------------------

// One daemon with keys of two users; the file of keys is written by each test.
class IodKeys : public IodWorld {
 protected:
  void SetUp() override {
    IodWorld::SetUp();
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as other users";
    for (const char* user : {"nobody", "daemon"}) {
      ASSERT_NE(::getpwnam(user), nullptr);
      write_key(std::string(user) + ".key", std::string(user) + " has a key of enough bytes");
      std::filesystem::create_directories(path(std::string("own-") + user));
      ASSERT_EQ(::chown(path(std::string("own-") + user).c_str(), id_of(user), 0), 0);
    }
    std::filesystem::create_directories(path("shared"));
    std::filesystem::create_directories(path("roots"));
    ::chmod(path("shared").c_str(), 01777);
  }
  static uid_t id_of(const char* user) { return ::getpwnam(user)->pw_uid; }

  void write_keys(const std::string& text) const {
    std::ofstream(path("keys")) << text;
    ::chmod(path("keys").c_str(), 0600);
  }
  Result<std::unique_ptr<iod::Daemon>> start_with_keys(const std::string& text) {
    write_keys(text);
    iod::DaemonOptions wanted;
    wanted.listen = {"127.0.0.1", "0"};
    wanted.targets = {{"s", path("shared")}, {"o", path("own-%u")}};
    wanted.directories = {{"f", path("own-%u")}, {"r", path("roots")}};
    wanted.keys_file = path("keys");
    return iod::Daemon::start(wanted);
  }
  std::string refusal_of(const std::string& text) {
    const auto node = start_with_keys(text);
    return node ? "accepted" : describe(node.error());
  }

  static Request asking(Op op, const std::string& target, const std::string& name,
                        std::int64_t first = 0) {
    Request request;
    request.head.op = static_cast<std::uint32_t>(op);
    request.head.first = first;
    request.words = {target, name};
    return request;
  }
  std::unique_ptr<remote::Connection> connect(const iod::Daemon& node, const std::string& user) {
    auto connection = remote::Connection::open(node.address(), path(user + ".key"));
    EXPECT_TRUE(connection.has_value()) << describe(connection.error());
    return connection ? *std::move(connection) : nullptr;
  }
};

const std::string part = std::string(32, 'a') + ".0";
const std::string other_part = std::string(32, 'b') + ".0";

TEST_F(IodKeys, ActsAsTheUserOfTheKey) {
  auto node = start_with_keys("nobody nobody.key\n# a comment\ndaemon daemon.key s,o\n");
  ASSERT_TRUE(node.has_value()) << describe(node.error());
  auto nobody = connect(**node, "nobody");
  auto daemon = connect(**node, "daemon");
  ASSERT_TRUE(nobody && daemon);
  for (const char* target : {"s", "o"}) {
    require(status_of(nobody->call(asking(Op::attach, target, {}, 1))));
    require(status_of(nobody->call(asking(Op::make, target, part, 0600))));
    require(status_of(daemon->call(asking(Op::attach, target, {}, 1))));
    require(status_of(daemon->call(asking(Op::make, target, other_part, 0600))));
  }
  const auto owner_of = [&](const std::string& name) {
    struct stat facts{};
    EXPECT_EQ(::stat(path(name).c_str(), &facts), 0) << name;
    return facts.st_uid;
  };
  EXPECT_EQ(owner_of("shared/" + part), id_of("nobody"));
  EXPECT_EQ(owner_of("shared/" + other_part), id_of("daemon"));
  EXPECT_EQ(owner_of("own-nobody/" + part), id_of("nobody"));
  EXPECT_EQ(owner_of("own-daemon/" + other_part), id_of("daemon"));
  // The kernel refuses the other user's file, and to remove it from the shared directory.
  std::vector<std::byte> answer;
  const auto opened =
      daemon->call(asking(Op::open, "s", part, remote::Opening::read), answer, 4096);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::access_denied) << describe(opened.error());
  EXPECT_FALSE(daemon->call(asking(Op::remove, "s", part)).has_value());
  EXPECT_FALSE(daemon->call(asking(Op::set_mode, "s", part, 0666)).has_value());
  EXPECT_EQ(owner_of("shared/" + part), id_of("nobody"));
  require(status_of(nobody->call(asking(Op::remove, "s", part))));
  // This thread and process are as before.
  EXPECT_EQ(owner_of("keys"), 0U);
}

TEST_F(IodKeys, ServesDirectoriesAsTheUserOfTheKey) {
  auto node = start_with_keys("nobody nobody.key\ndaemon daemon.key s,f\n");
  ASSERT_TRUE(node.has_value()) << describe(node.error());
  auto nobody = connect(**node, "nobody");
  auto daemon = connect(**node, "daemon");
  ASSERT_TRUE(nobody && daemon);
  require(status_of(nobody->call(asking(Op::make_directory, "f", "made", 0700))));
  struct stat facts{};
  ASSERT_EQ(::stat(path("own-nobody/made").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, id_of("nobody"));
  // The daemon runs as root, which may write everywhere.
  require(status_of(nobody->call(asking(Op::check_writable, "f", "made"))));
  for (const Op op : {Op::check_writable, Op::make_directory}) {
    const auto refused = nobody->call(asking(op, "r", op == Op::check_writable ? "" : "made"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::access_denied) << describe(refused.error());
  }
  require(status_of(nobody->call(asking(Op::lock_directory, "f", "made/file"))));
  EXPECT_FALSE(daemon->call(asking(Op::examine_path, "f", "made")).has_value());
  const auto not_ours = daemon->call(asking(Op::check_writable, "r", {}));
  ASSERT_FALSE(not_ours.has_value());
  EXPECT_EQ(not_ours.error().code, Code::bad_file) << describe(not_ours.error());
}

TEST_F(IodKeys, ShowsAndServesWhatTheKeyIsFor) {
  auto node = start_with_keys("nobody nobody.key s\ndaemon daemon.key\n");
  ASSERT_TRUE(node.has_value()) << describe(node.error());
  auto nobody = connect(**node, "nobody");
  auto daemon = connect(**node, "daemon");
  ASSERT_TRUE(nobody && daemon);
  const auto refused = nobody->call(asking(Op::attach, "o", {}, 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::bad_file) << describe(refused.error());
  const auto text = remote::ask_status((*node)->address(), path("nobody.key"));
  ASSERT_TRUE(text.has_value()) << describe(text.error());
  EXPECT_NE(text->find("key of user nobody: 2 connections"), std::string::npos) << *text;
  EXPECT_EQ(text->find("user daemon"), std::string::npos) << *text;
  EXPECT_EQ(text->find("target o"), std::string::npos) << *text;
  EXPECT_NE((*node)->status().find("key of user daemon: 1 connections"), std::string::npos);
}

TEST_F(IodKeys, EndsConnectionsOfAKeyThatIsWithdrawn) {
  auto node = start_with_keys("nobody nobody.key\ndaemon daemon.key\n");
  ASSERT_TRUE(node.has_value()) << describe(node.error());
  auto nobody = connect(**node, "nobody");
  auto daemon = connect(**node, "daemon");
  ASSERT_TRUE(nobody && daemon);
  write_keys("no such user\n");
  EXPECT_FALSE((*node)->read_keys().has_value());
  EXPECT_TRUE(nobody->call(asking(Op::attach, "s", {}, 1)).has_value());
  write_keys("daemon daemon.key\n");
  require((*node)->read_keys());
  EXPECT_FALSE(nobody->call(asking(Op::attach, "s", {}, 1)).has_value());
  EXPECT_TRUE(daemon->call(asking(Op::attach, "s", {}, 1)).has_value());
  const auto again = remote::Connection::open((*node)->address(), path("nobody.key"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, Code::access_denied) << describe(again.error());
}

TEST_F(IodKeys, RefusesBadFilesOfKeys) {
  const auto has = [](const std::string& text, const char* part_of_it) {
    return text.find(part_of_it) != std::string::npos;
  };
  EXPECT_PRED2(has, refusal_of("nobody\n"), "line 1: write USER KEY-FILE");
  EXPECT_PRED2(has, refusal_of("# none\n"), "has no key");
  EXPECT_PRED2(has, refusal_of("\nnot-a-user nobody.key\n"), "line 2: there is no user not-a-user");
  EXPECT_PRED2(has, refusal_of("nobody nobody.key x\n"), "target or directory x is not served");
  EXPECT_PRED2(has, refusal_of("nobody none.key\n"), "none.key");
  EXPECT_PRED2(has, refusal_of("nobody nobody.key\ndaemon nobody.key\n"), "two keys are the same");
  ASSERT_EQ(::chown(path("nobody.key").c_str(), id_of("daemon"), 0), 0);
  EXPECT_PRED2(has, refusal_of("nobody nobody.key\n"), "belongs to another user");
  ASSERT_EQ(::chown(path("nobody.key").c_str(), id_of("nobody"), 0), 0);
  EXPECT_EQ(refusal_of("nobody nobody.key\n"), "accepted");
  ::chmod(path("nobody.key").c_str(), 0640);
  EXPECT_PRED2(has, refusal_of("nobody nobody.key\n"), "other users can read the key");
  ::chmod(path("nobody.key").c_str(), 0600);
  write_keys("nobody nobody.key\n");
  ::chmod(path("keys").c_str(), 0622);
  iod::DaemonOptions wanted;
  wanted.listen = {"127.0.0.1", "0"};
  wanted.targets = {{"s", path("shared")}};
  wanted.keys_file = path("keys");
  const auto node = iod::Daemon::start(wanted);
  ASSERT_FALSE(node.has_value());
  EXPECT_PRED2(has, describe(node.error()), "other users can write");
}

TEST_F(IodKeys, BoundsTheConnectionsOfAKey) {
  write_keys("nobody nobody.key\ndaemon daemon.key\n");
  iod::DaemonOptions wanted;
  wanted.listen = {"127.0.0.1", "0"};
  wanted.targets = {{"s", path("shared")}};
  wanted.keys_file = path("keys");
  wanted.most_clients_of_key = 2;
  auto node = iod::Daemon::start(wanted);
  ASSERT_TRUE(node.has_value());
  auto first = connect(**node, "nobody");
  auto second = connect(**node, "nobody");
  EXPECT_FALSE(remote::Connection::open((*node)->address(), path("nobody.key")).has_value());
  auto other = connect(**node, "daemon");
  EXPECT_TRUE(other->call(asking(Op::attach, "s", {}, 1)).has_value());
}

}  // namespace
}  // namespace shima
