// The liveness service: what counts as a loss, who learns of it, and which connections the hub
// refuses. Nodes are processes of this machine, connected over loopback.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "group/liveness/hub.h"
#include "group/liveness/lookout.h"

namespace shima {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds guard{30};  // longer than anything takes, also on a busy machine
constexpr seconds timeout{10};

bool becomes_true(const std::function<bool()>& condition) {
  for (const auto until = Clock::now() + guard; Clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return false;
}

// What a loss that does not happen gets as time to be seen.
void wait_a_moment() { std::this_thread::sleep_for(milliseconds(300)); }

// The words of up to eight nodes of up to four members, shared with forked processes. Member m of
// node n has rank 4 n + m.
struct Words {
  struct Node {
    std::atomic<std::uint32_t> lost{0};
    std::array<std::atomic<std::uint32_t>, 4> left{};
    std::atomic<std::uint32_t> ready{0};
  };
  std::array<Node, 8> nodes;
};

std::shared_ptr<Words> make_words() {
  void* const memory =
      ::mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return {new (memory) Words, [](Words* words) { ::munmap(words, sizeof(Words)); }};
}

// A process that runs `body` and then sleeps until it is killed; killed with this object at the
// latest.
class Process {
 public:
  explicit Process(const std::function<void()>& body = [] {}) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    while (true) ::pause();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { kill(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// Node `index`, led by the calling process; the other members are `others`.
WatchedNode node_of(const std::shared_ptr<Words>& words, std::size_t index,
                    const std::vector<pid_t>& others = {}) {
  Words::Node& shared = words->nodes[index];
  WatchedNode node{{}, 0, &shared.lost, words};
  const auto first = static_cast<std::uint32_t>(4 * index);
  node.members.push_back({first, ProcessIdentity::own(), shared.left.data()});
  for (const pid_t pid : others) {
    const auto i = static_cast<std::uint32_t>(node.members.size());
    node.members.push_back({first + i, ProcessIdentity::of(pid), &shared.left[i]});
  }
  return node;
}

UniqueFd connect(const ServiceAddress& hub) {
  auto socket = connect_to(hub, milliseconds(guard));
  EXPECT_TRUE(socket.has_value()) << socket.error().what;
  close_if_unreachable(socket->get(), timeout);
  return *std::move(socket);
}

std::shared_ptr<Hub> start_hub() { return Hub::start(shared_with({}, {}), timeout).value(); }

// A node whose leader is another process.
std::unique_ptr<Process> start_node(const std::shared_ptr<Words>& words, std::size_t index,
                                    const ServiceAddress& hub) {
  auto process = std::make_unique<Process>([&] {
    static std::shared_ptr<Lookout> lookout;
    lookout = Lookout::start(node_of(words, index), connect(hub)).value();
    words->nodes[index].ready = 1;
  });
  EXPECT_TRUE(becomes_true([&] { return words->nodes[index].ready == 1; }));
  return process;
}

bool all_know(const Words& words, std::initializer_list<std::size_t> nodes, std::uint32_t rank) {
  return becomes_true([&] {
    for (const std::size_t node : nodes)
      if (words.nodes[node].lost != rank + 1) return false;
    return true;
  });
}

bool nobody_is_lost(const Words& words) {
  wait_a_moment();
  for (const auto& node : words.nodes)
    if (node.lost != 0) return false;
  return true;
}

TEST(Liveness, AllNodesLearnOfAMemberThatIsKilled) {
  const auto words = make_words();
  const auto hub = start_hub();
  Process member;
  const auto here = Lookout::start(node_of(words, 0, {member.pid()}), connect(hub->address()));
  const auto second = start_node(words, 1, hub->address());
  const auto third = start_node(words, 2, hub->address());
  EXPECT_TRUE(nobody_is_lost(*words));
  member.kill();
  EXPECT_TRUE(all_know(*words, {0, 1, 2}, 1));
}

TEST(Liveness, AllNodesLearnOfALeaderThatIsKilled) {
  const auto words = make_words();
  const auto hub = start_hub();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  const auto second = start_node(words, 1, hub->address());
  const auto third = start_node(words, 2, hub->address());
  second->kill();
  EXPECT_TRUE(all_know(*words, {0, 2}, 4));
}

TEST(Liveness, TheEndOfTheHubIsTheLossOfRankZero) {
  const auto words = make_words();
  int address[2];
  ASSERT_EQ(::pipe(address), 0);
  Process first([&] {
    static std::shared_ptr<Hub> hub;
    hub = start_hub();
    const ServiceAddress shown = hub->address();
    EXPECT_EQ(::write(address[1], &shown, sizeof shown), static_cast<ssize_t>(sizeof shown));
  });
  ServiceAddress hub;
  ASSERT_EQ(::read(address[0], &hub, sizeof hub), static_cast<ssize_t>(sizeof hub));
  const auto here = Lookout::start(node_of(words, 1), connect(hub));
  EXPECT_TRUE(nobody_is_lost(*words));
  first.kill();
  EXPECT_TRUE(all_know(*words, {1}, 0));
  ::close(address[0]);
  ::close(address[1]);
}

TEST(Liveness, ANodeThatComesAfterALossLearnsOfIt) {
  const auto words = make_words();
  const auto hub = start_hub();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  const auto second = start_node(words, 1, hub->address());
  second->kill();
  ASSERT_TRUE(all_know(*words, {0}, 4));
  const auto third = start_node(words, 2, hub->address());
  EXPECT_TRUE(all_know(*words, {2}, 4));
}

TEST(Liveness, ANodeWithoutAHubWatchesItsOwnMembers) {
  const auto words = make_words();
  Process member;
  const auto here = Lookout::start(node_of(words, 0, {member.pid()}), UniqueFd());
  member.kill();
  EXPECT_TRUE(all_know(*words, {0}, 1));
}

TEST(Liveness, AMemberThatHasEndedBeforeIsLost) {
  const auto words = make_words();
  Process member;
  const WatchedNode node = node_of(words, 0, {member.pid()});
  member.kill();
  const auto here = Lookout::start(node, UniqueFd());
  EXPECT_TRUE(all_know(*words, {0}, 1));
}

TEST(Liveness, WhoHasLeftIsNotLost) {
  const auto words = make_words();
  const auto hub = start_hub();
  Process member;
  const auto here =
      Lookout::start(node_of(words, 0, {member.pid()}), connect(hub->address())).value();
  auto second = Lookout::start(node_of(words, 1), connect(hub->address())).value();
  words->nodes[0].left[1] = 1;
  member.kill();
  words->nodes[1].left[0] = 1;
  second->leave();
  EXPECT_TRUE(becomes_true([&] { return second->is_over(); }));
  second.reset();
  EXPECT_TRUE(nobody_is_lost(*words));
}

// A leader that has left still reports the others of its node.
TEST(Liveness, ALeaderThatHasLeftWatchesTheMembersThatHaveNot) {
  const auto words = make_words();
  const auto hub = start_hub();
  Process member;
  const auto here =
      Lookout::start(node_of(words, 0, {member.pid()}), connect(hub->address())).value();
  const auto second = start_node(words, 1, hub->address());
  words->nodes[0].left[0] = 1;
  here->leave();
  EXPECT_TRUE(nobody_is_lost(*words));
  EXPECT_FALSE(here->is_over());
  member.kill();
  EXPECT_TRUE(all_know(*words, {1}, 1));
}

TEST(Liveness, TheHubStaysUntilAllNodesHaveLeft) {
  const auto words = make_words();
  const auto hub = start_hub();
  auto here = Lookout::start(node_of(words, 0), connect(hub->address())).value();
  auto second = start_node(words, 1, hub->address());
  auto third = start_node(words, 2, hub->address());
  words->nodes[0].left[0] = 1;
  here->leave();
  hub->leave();
  wait_a_moment();
  EXPECT_FALSE(hub->is_over());
  second->kill();
  EXPECT_TRUE(all_know(*words, {2}, 4));
  third->kill();
  EXPECT_TRUE(becomes_true([&] { return hub->is_over(); }));
}

TEST(Liveness, AHubThatHasLeftIsNotLost) {
  const auto words = make_words();
  auto hub = start_hub();
  const auto here = Lookout::start(node_of(words, 1), connect(hub->address())).value();
  hub.reset();
  EXPECT_TRUE(nobody_is_lost(*words));
}

// The hub's thread may still have the node's first notice before it.
TEST(Liveness, AHubThatLeavesAtOnceIsNotLost) {
  constexpr std::size_t rounds = 64;
  std::vector<std::shared_ptr<Words>> words;
  std::vector<std::shared_ptr<Lookout>> nodes;
  for (std::size_t i = 0; i < rounds; ++i) {
    auto hub = start_hub();
    words.push_back(make_words());
    nodes.push_back(Lookout::start(node_of(words.back(), 1), connect(hub->address())).value());
  }
  wait_a_moment();
  for (const auto& of_node : words) EXPECT_EQ(of_node->nodes[1].lost, 0U);
}

// Its kernel answers for it. The time that counts is shorter than the stop.
TEST(Liveness, AStoppedLeaderIsNotLost) {
  const auto words = make_words();
  const auto hub = Hub::start(shared_with({}, {}), seconds(1)).value();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  const auto second = start_node(words, 1, hub->address());
  second->send(SIGSTOP);
  std::this_thread::sleep_for(seconds(4));
  EXPECT_EQ(words->nodes[0].lost, 0U);
  second->send(SIGCONT);
  EXPECT_TRUE(nobody_is_lost(*words));
  second->kill();
  EXPECT_TRUE(all_know(*words, {0}, 4));
}

TEST(Liveness, AStoppedMemberIsNotLost) {
  const auto words = make_words();
  Process member;
  const auto here = Lookout::start(node_of(words, 0, {member.pid()}), UniqueFd());
  member.send(SIGSTOP);
  EXPECT_TRUE(nobody_is_lost(*words));
}

bool is_closed_by_server(const UniqueFd& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;  // waits for the end
}

UniqueFd visit(const ServiceAddress& hub) {
  const SocketAddress& endpoint = hub.endpoints[0];
  UniqueFd socket(::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), as_sockaddr(endpoint), length_of(endpoint)), 0);
  return socket;
}

TEST(Liveness, AForgedSecretIsRefused) {
  const auto words = make_words();
  const auto hub = start_hub();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  const UniqueFd visitor = visit(hub->address());
  std::array<std::byte, sizeof(ServiceAddress::Secret)> forged{};
  ASSERT_TRUE(send_all(visitor.get(), forged.data(), forged.size()));
  std::ignore = send_notice(visitor.get(), {.kind = Notice::lost, .rank = 1});
  EXPECT_TRUE(is_closed_by_server(visitor));
  EXPECT_TRUE(nobody_is_lost(*words));
}

TEST(Liveness, AServerWithAnotherSecretIsNotTheHub) {
  const auto hub = start_hub();
  ServiceAddress other = hub->address();
  other.keeper = {};
  EXPECT_FALSE(connect_to(other, milliseconds(guard)));
}

TEST(Liveness, SilentVisitorsAreClosedAndAreNoLoss) {
  const auto words = make_words();
  const auto hub =
      Hub::start(shared_with({}, {}), timeout,
                 {.most_clients = 8, .handshake_timeout = milliseconds(20), .idle_timeout = {}})
          .value();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  EXPECT_TRUE(is_closed_by_server(visit(hub->address())));
  EXPECT_TRUE(nobody_is_lost(*words));
}

TEST(Liveness, AClientThatNeverJoinsIsNoLoss) {
  const auto words = make_words();
  const auto hub = start_hub();
  const auto here = Lookout::start(node_of(words, 0), connect(hub->address()));
  connect(hub->address());  // and ends
  EXPECT_TRUE(nobody_is_lost(*words));
}

}  // namespace
}  // namespace shima
