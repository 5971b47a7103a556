// Damaged requests to an I/O node: the decoder refuses them, or the session executes them within
// its target; what a client sends over the connection is answered, or the connection is dropped.
//
// SHIMA_FUZZ_ROUNDS sets the number of rounds, SHIMA_SEED the first.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "collective/window/window_message.h"
#include "group/messenger.h"
#include "iod_world.h"
#include "net/key_proof.h"
#include "net/wire.h"
#include "store/remote/connection.h"
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
  request.head.flags = static_cast<std::uint32_t>(random() % 8);  // all of remote::Flag
  if (request.op() == Op::read || request.op() == Op::write)
    for (std::size_t i = random() % 40; i > 0; --i)
      request.runs.push_back({some_number(random), random() % 5000});
  request.words = {random() % 8 == 0 ? "b" : "a", some_name(random)};
  if (random() % 16 == 0) request.words.pop_back();
  data_bytes = request.op() == Op::write        ? remote::bytes_in(request.runs)
               : request.op() == Op::write_text ? random() % 5000
               : request.op() == Op::join       ? sizeof(DirectedCall)
                                                : 0;
  return request;
}

void damage(std::vector<std::byte>& bytes, Random& random) {
  for (std::size_t times = random() % 4; times > 0; --times)
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << (random() % 8));
}

// Of a call with one or two that take part; most are sound.
DirectedCall some_call(Random& random, std::uint64_t first_id) {
  DirectedCall call{.id = first_id + random() % 2,
                    .participants = 1 + static_cast<std::uint32_t>(random() % 2),
                    .writes = static_cast<std::uint32_t>(random() % 2),
                    .window_bytes = 4096 * (1 + random() % 4),
                    .granule_bytes = std::uint64_t{1} << (random() % 13),
                    .range = {{0}, {static_cast<std::int64_t>(4096 * (1 + random() % 20))}}};
  if (random() % 8 == 0) call.range.begin.value = some_number(random);
  if (random() % 8 == 0) call.range.end.value = some_number(random) & ~std::int64_t{4095};
  if (random() % 8 == 0) call.window_bytes = static_cast<std::uint64_t>(some_number(random));
  if (random() % 8 == 0) call.granule_bytes = static_cast<std::uint64_t>(some_number(random));
  return call;
}

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  const auto* const first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof value);
}

WindowId some_window(Random& random) {
  std::int64_t number = static_cast<int>(random() % 4) - 1;
  if (random() % 8 == 0) number = some_number(random);
  if (random() % 8 == 0) number = some_number(random) / 4096;  // in a range up to the last offset
  return {.number = number, .domain = random() % 8 == 0 ? 1 : 0};
}

// A message in a lane: of the right form, or of any.
std::vector<std::byte> some_message(Random& random) {
  std::vector<std::byte> bytes;
  Lane lane = Lane::request;
  if (random() % 2 == 0) {
    append(bytes, WindowRequest{some_window(random), some_window(random)});
  } else {
    lane = Lane::to_agent;
    append(bytes, WindowHead{some_window(random), some_window(random)});
    append(bytes, random() % 3);  // how many runs
    for (std::size_t i = random() % 40; i > 0; --i)
      append(bytes, static_cast<std::uint32_t>(random() % 64));
  }
  std::vector<std::byte> all;
  append(all, random() % 8 == 0 ? static_cast<std::uint32_t>(random() % 10)
                                : static_cast<std::uint32_t>(lane));
  append(all, std::uint32_t{0});
  append(all, random() % 8 == 0 ? random() : std::uint64_t{bytes.size()});
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
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
    RunMergers mergers;
    iod::LockHolders lock_holders;
    const std::string client = "client";
    iod::Session session(served, traffic, {mergers, lock_holders}, client);
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

// The agent of a call takes only what keeps the rules; else the call ends, and changes no byte
// outside its range.
TEST_F(IodFuzz, DirectedCallsEndWhateverComes) {
  make("d/f", {{{0}, 4096, {"a"}}}, some_bytes(200'000, 1));
  const std::string id = (*read_master(path("d/f")).value()).id.hex;
  const unsigned first = setting("SHIMA_SEED", 1);
  for (unsigned seed = first; seed < first + setting("SHIMA_FUZZ_ROUNDS", 40); ++seed) {
    Random random(seed);
    std::vector<std::unique_ptr<remote::Connection>> open;
    for (int i = 0; i < 3; ++i) {
      open.push_back(remote::Connection::open({"127.0.0.1", ports_[0]}, path("key")).value());
      Request request;
      request.head.op = static_cast<std::uint32_t>(Op::open);
      request.head.first = remote::Opening::read | remote::Opening::write;
      request.words = {"a", id + ".0"};
      std::vector<std::byte> facts;
      ASSERT_TRUE(open.back()->call(request, facts, sizeof(remote::Facts)).has_value());
      Request join;
      join.head.op = static_cast<std::uint32_t>(Op::join);
      DirectedCall call = some_call(random, std::uint64_t{2} * seed);
      const iovec piece{&call, sizeof call};
      ASSERT_TRUE(open.back()->send(join, std::span(&piece, 1)).has_value());
    }
    for (int i = 0; i < 20; ++i) {
      const auto bytes = some_message(random);
      std::ignore = ::send(open[random() % open.size()]->socket(), bytes.data(), bytes.size(),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    for (const auto& connection : open) ::shutdown(connection->socket(), SHUT_WR);
    std::array<char, 65536> heard{};
    for (const auto& connection : open)
      while (::recv(connection->socket(), heard.data(), heard.size(), 0) > 0) {
      }
  }
  const Bytes now = contents("d/f").value();
  const Bytes before = some_bytes(200'000, 1);
  constexpr std::ptrdiff_t most_changed = 20 * 4096;
  EXPECT_TRUE(std::equal(now.begin() + most_changed, now.end(), before.begin() + most_changed,
                         before.end()));
}

}  // namespace
}  // namespace shima
