// Damaged requests to an I/O node: the decoder refuses them, or the session executes them within
// its target; what a client sends over the connection is answered, or the connection is dropped.
//
// SHIMA_FUZZ_ROUNDS sets the number of rounds, SHIMA_SEED the first.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "iod_world.h"
#include "net/key_proof.h"
#include "net/wire.h"
#include "store/remote/message.h"

namespace shima {
namespace {

using remote::Op;
using remote::Request;
using remote::RequestHead;
using Random = std::mt19937_64;

unsigned setting(const char* name, unsigned usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

std::int64_t some_number(Random& random) {
  const std::int64_t small = static_cast<std::int64_t>(random() % 100'000);
  switch (random() % 6) {
    case 0:
      return -small;
    case 1:
      return std::numeric_limits<std::int64_t>::max() - small;
    case 2:
      return static_cast<std::int64_t>(random());
    default:
      return small;
  }
}

std::string some_name(Random& random) {
  const std::string id(32, "0123456789abcdef"[random() % 4]);
  const std::array<std::string, 9> names{
      id + ".0",        id + ".1", id + ".master",
      id + ".restripe", "../x",    "",
      ".shima-target",  id,        std::string(random() % 600, '/')};
  return names[random() % names.size()];
}

Request some_request(Random& random, std::uint64_t& data_bytes) {
  Request request;
  request.head.op =
      1 + static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(remote::last_op);
  request.head.first = some_number(random);
  request.head.second = some_number(random);
  // Sizes that the disk has room for.
  if (request.op() == Op::preallocate) request.head.first %= 1 << 20;
  request.head.flags = static_cast<std::uint32_t>(random() % 3);
  if (request.op() == Op::read || request.op() == Op::write)
    for (std::size_t i = random() % 40; i > 0; --i)
      request.runs.push_back({some_number(random), random() % 5000});
  request.words = {random() % 8 == 0 ? "b" : "a", some_name(random)};
  if (random() % 16 == 0) request.words.pop_back();
  data_bytes = request.op() == Op::write        ? remote::bytes_in(request.runs)
               : request.op() == Op::write_text ? random() % 5000
                                                : 0;
  return request;
}

void damage(std::vector<std::byte>& bytes, Random& random) {
  for (std::size_t times = random() % 4; times > 0; --times)
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << (random() % 8));
}

class IodFuzz : public IodWorld {
 protected:
  void SetUp() override {
    IodWorld::SetUp();
    std::ofstream(path("outside")) << "outside";
  }
  void TearDown() override {
    std::ifstream file(path("outside"));
    std::string text;
    file >> text;
    EXPECT_EQ(text, "outside");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path(".")), {}), 7);
    IodWorld::TearDown();
  }
};

TEST_F(IodFuzz, ExecutesOnlyWhatIsSound) {
  const unsigned first = setting("SHIMA_SEED", 1);
  iod::ServedTargets served;
  served.push_back(std::make_unique<iod::ServedTarget>());
  served.front()->place = {"a", path("target-a")};
  ASSERT_TRUE(Target::open_at(served.front()->place, Target::Purpose::create).has_value());
  for (unsigned seed = first; seed < first + setting("SHIMA_FUZZ_ROUNDS", 40); ++seed) {
    Random random(seed);
    iod::Traffic traffic;
    iod::Session session(served, traffic);
    iod::Allowance memory(std::size_t{16} << 20);
    iod::Buffer data(memory);
    for (int i = 0; i < 100; ++i) {
      std::uint64_t data_bytes = 0;
      auto bytes = encode(some_request(random, data_bytes), data_bytes);
      damage(bytes, random);
      RequestHead head;
      std::memcpy(&head, bytes.data(), sizeof head);
      const auto request = remote::decode(head, std::span(bytes).subspan(sizeof head));
      if (!request || (request->op() == Op::preallocate && head.first > 1 << 20)) continue;
      std::ranges::fill(data.take(head.data_bytes), std::byte{1});
      std::ignore = session.execute(*request, data);
    }
  }
}

TEST_F(IodFuzz, AnswersOrDropsWhatComesOverAConnection) {
  const unsigned first = setting("SHIMA_SEED", 1);
  const Key key = read_key(path("key")).value();
  for (unsigned seed = first; seed < first + setting("SHIMA_FUZZ_ROUNDS", 40); ++seed) {
    Random random(seed);
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(std::stoul(ports_[0])));
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    if (seed % 4 != 0) {
      ASSERT_TRUE(prove_to_server(socket.get(), key, remote::spoken).has_value());
    }
    for (std::uint32_t i = 0; i < 20; ++i) {
      std::uint64_t data_bytes = 0;
      Request request = some_request(random, data_bytes);
      request.head.serial = i + 1;
      auto bytes = encode(std::move(request), data_bytes);
      if (random() % 4 == 0) damage(bytes, random);
      bytes.resize(bytes.size() + data_bytes);
      if (!send_all(socket.get(), bytes.data(), bytes.size())) break;
    }
    ::shutdown(socket.get(), SHUT_WR);
    std::array<char, 65536> heard{};
    while (::recv(socket.get(), heard.data(), heard.size(), 0) > 0) {
    }
  }
  // Others are served.
  make("d/f", three, some_bytes(10'000, 1));
  EXPECT_EQ(contents("d/f"), some_bytes(10'000, 1));
}

}  // namespace
}  // namespace shima
