// The server of shared file pointers: its answers, the connections it keeps, the addresses at which
// it listens.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "group/pointer/pointer_client.h"
#include "group/pointer/pointer_service.h"
#include "net/job_network.h"

namespace shima {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<PointerService> start_here(const ServerLimits& limits = {}) {
  return PointerService::start(shared_with({}, {}), limits).value();
}

std::ptrdiff_t descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

UniqueFd connect_silently(const PointerService& service) {
  const SocketAddress& endpoint = service.address().endpoints[0];
  UniqueFd socket(::socket(endpoint.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), as_sockaddr(endpoint), length_of(endpoint)), 0);
  return socket;
}

bool is_closed_by_server(const UniqueFd& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, 0) <= 0;  // waits for the end
}

Result<std::int64_t> advance(PointerClient& client, std::int64_t distance) {
  return client.ask({.file = 1, .operation = PointerRequest::advance, .value = distance});
}

TEST(PointerService, AnswersWithThePositionBefore) {
  const auto service = start_here();
  PointerClient client(service->address());
  EXPECT_EQ(advance(client, 10).value(), 0);
  EXPECT_EQ(advance(client, 5).value(), 10);
  EXPECT_EQ(service->serve({.file = 1, .value = 1}), 15);
  EXPECT_EQ(client.ask({.file = 1, .operation = PointerRequest::set, .value = 100}).value(), 16);
  EXPECT_EQ(service->serve({.file = 1}), 100);
  EXPECT_EQ(service->serve({.file = 2}), 0);
}

TEST(PointerService, ARepeatedRequestIsCarriedOutOnce) {
  const auto service = start_here();
  const PointerRequest request{.file = 1, .value = 7, .client = 3, .serial = 1};
  EXPECT_EQ(service->serve(request), 0);
  EXPECT_EQ(service->serve(request), 0);
  EXPECT_EQ(service->serve({.file = 1}), 7);
}

TEST(PointerService, SilentVisitorsTakeFewDescriptorsAndHoldNobodyUp) {
  constexpr std::ptrdiff_t visitor_count = 300;
  const auto service = start_here({.most_strangers = 8});
  const std::ptrdiff_t before = descriptors();
  std::vector<UniqueFd> visitors;
  for (int i = 0; i < visitor_count; ++i) visitors.push_back(connect_silently(*service));
  PointerClient client(service->address());
  EXPECT_EQ(advance(client, 1).value(), 0);  // accepted after all of them
  EXPECT_LE(descriptors(), before + visitor_count + 8 + 2);
  EXPECT_TRUE(is_closed_by_server(visitors.front()));
}

TEST(PointerService, AVisitorThatStaysSilentIsClosed) {
  const auto service = start_here({.handshake_timeout = milliseconds(20)});
  EXPECT_TRUE(is_closed_by_server(connect_silently(*service)));
}

TEST(PointerService, AWrongSecretIsClosed) {
  const auto service = start_here();
  const UniqueFd visitor = connect_silently(*service);
  ASSERT_TRUE(send_all(visitor.get(), ServiceAddress::Secret{}.data(), 16));
  EXPECT_TRUE(is_closed_by_server(visitor));
}

TEST(PointerService, IdleClientsAreReleasedAndComeBack) {
  const auto service = start_here({.idle_timeout = milliseconds(1)});
  PointerClient client(service->address());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(advance(client, 1).value(), i);
    std::this_thread::sleep_for(milliseconds(i % 4));
  }
}

// It is not lost.
TEST(PointerService, AClientWaitsForAServerThatIsStopped) {
  int shown[2];
  ASSERT_EQ(::pipe(shown), 0);
  const pid_t server = ::fork();
  if (server == 0) {
    const auto service = start_here();
    std::ignore = ::write(shown[1], &service->address(), sizeof(ServiceAddress));
    while (true) ::pause();
  }
  ServiceAddress address;
  ASSERT_EQ(::read(shown[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
  PointerClient client(address);
  EXPECT_EQ(advance(client, 1).value_or(-1), 0);
  ::kill(server, SIGSTOP);
  std::thread waker([server] {
    std::this_thread::sleep_for(milliseconds(6500));  // longer than a handshake may take
    ::kill(server, SIGCONT);
  });
  EXPECT_EQ(advance(client, 1).value_or(-1), 1);
  waker.join();
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  const auto refused = advance(client, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::peer_lost);
  ::close(shown[0]);
  ::close(shown[1]);
}

// More clients than connections, all at once: each request is executed exactly once.
TEST(PointerService, ManyClientsShareFewConnections) {
  constexpr int clients = 24;
  constexpr int rounds = 20;
  const auto service = start_here({.most_clients = 20});
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&] {
      PointerClient client(service->address());
      std::int64_t last = -1;
      for (int round = 0; round < rounds; ++round) {
        const auto at = advance(client, 1);
        ASSERT_TRUE(at.has_value()) << at.error().what;
        ASSERT_GT(*at, last);
        last = *at;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service->serve({.file = 1}), clients * rounds);
}

SocketAddress address(const char* text) {
  SocketAddress made{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(made);
  v4.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &v4.sin_addr), 1) << text;
  return made;
}

NodeAddresses node(std::initializer_list<const char*> texts) {
  NodeAddresses made;
  for (const char* text : texts) made.all[made.count++] = address(text);
  return made;
}

std::vector<std::string> names(const std::vector<SocketAddress>& addresses) {
  std::vector<std::string> found;
  for (const SocketAddress& each : addresses) found.push_back(name_of(each));
  return found;
}

using Names = std::vector<std::string>;

TEST(JobNetwork, ListensInTheNetworkThatAllNodesShare) {
  const std::vector<OwnAddress> own{{address("141.30.1.5"), 24},
                                    {address("10.77.0.1"), 24},
                                    {address("10.99.0.1"), 16},
                                    {address("172.17.0.1"), 16}};
  const std::vector<NodeAddresses> others{
      node({"141.30.1.6", "10.77.0.2", "10.99.1.2", "172.17.0.1"}),
      node({"141.30.1.7", "10.77.0.3", "172.17.0.1"})};
  EXPECT_EQ(names(shared_with(own, others)), Names{"10.77.0.1"});
}

TEST(JobNetwork, APublicNetworkServesWhereThereIsNoOther) {
  const std::vector<OwnAddress> own{{address("141.30.1.5"), 23}, {address("10.0.0.1"), 8}};
  const std::vector<NodeAddresses> others{node({"141.30.0.9"})};
  EXPECT_EQ(names(shared_with(own, others)), Names{"141.30.1.5"});
  EXPECT_TRUE(shared_with(own, std::vector{node({"8.8.8.8"})}).empty());
}

TEST(JobNetwork, ContainersOfOneHostShareItsAddress) {
  const std::vector<OwnAddress> own{{address("10.1.0.1"), 24}};
  EXPECT_EQ(names(shared_with(own, std::vector{node({"10.1.0.1"})})), Names{"10.1.0.1"});
}

TEST(JobNetwork, AnInterfaceHasTheBitsOfItsNetmask) {
  for (const OwnAddress& own : own_addresses()) EXPECT_GT(own.network_bits, 0);
}

TEST(JobNetwork, OneNodeAloneListensToItself) {
  EXPECT_EQ(names(shared_with({}, {})), Names{"127.0.0.1"});
}

}  // namespace
}  // namespace shima
