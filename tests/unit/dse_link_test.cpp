// Active messages between `shima dse run` and a daemon: what arrives, what is refused; the
// introduction, and the order to start tasks, also with bytes that nobody sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <random>

#include "dse/introduction.h"
#include "dse/job_variables.h"
#include "dse/link.h"
#include "dse/orders.h"
#include "lapi/way/message.h"

namespace shima::dse {
namespace {

using testing::HasSubstr;

struct Pair {
  Pair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link = std::make_unique<Link>(UniqueFd(ends[0]));
    peer = std::make_unique<Link>(UniqueFd(ends[1]));
  }
  // What the link says to raw bytes of its peer.
  Status hear(const void* bytes, std::size_t len) const {
    EXPECT_EQ(::send(peer->socket(), bytes, len, 0), static_cast<ssize_t>(len));
    return link->receive();
  }
  std::unique_ptr<Link> link;
  std::unique_ptr<Link> peer;
};

lapi::Message head(std::uint64_t handler, std::uint32_t header_bytes, std::uint64_t data_bytes) {
  return {.kind = lapi::Kind::active,
          .header_bytes = header_bytes,
          .data_bytes = data_bytes,
          .address = handler};
}

TEST(DseLink, MessagesCallTheirHandlersInOrder) {
  Pair pair;
  std::string seen;
  pair.link->set(3, [&](Unpacked& header, std::string_view data) -> Status {
    seen += header.text();
    seen += std::to_string(header.number()) + std::string(data) + ";";
    return {};
  });
  pair.link->set(4, [&](Unpacked&, std::string_view data) -> Status {
    seen += std::to_string(data.size()) + ";";
    return {};
  });
  const std::string large(3 << 20, 'x');
  pair.peer->send(3, Packed().text("a").number(-7), "data");
  pair.peer->send(4, {}, large);
  pair.peer->send(3, Packed().text("").number(2));
  for (int i = 0; i < 10'000 && !seen.ends_with("2;"); ++i) {
    pair.peer->flush();
    const Status heard = pair.link->receive();
    ASSERT_TRUE(heard) << describe(heard.error());
  }
  EXPECT_EQ(seen, "a-7data;3145728;2;");
  pair.peer.reset();
  const Status end = pair.link->receive();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::peer_lost);
}

TEST(DseLink, OnlyRegisteredIndicesAreCalled) {
  static int calls = 0;
  const auto code_address = reinterpret_cast<std::uint64_t>(+[] { ++calls; });
  for (const std::uint64_t handler : {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{15},
                                      std::uint64_t{16}, ~std::uint64_t{0}, code_address}) {
    Pair pair;
    pair.link->set(1, [](Unpacked&, std::string_view) -> Status { return {}; });
    const auto message = head(handler, 0, 0);
    const Status heard = pair.hear(&message, lapi::message_head_bytes);
    ASSERT_FALSE(heard) << handler;
    EXPECT_THAT(heard.error().what, HasSubstr("handler that is not registered"));
  }
  EXPECT_EQ(calls, 0);
}

TEST(DseLink, HeadsThatNobodySendsEndIt) {
  lapi::Message put = head(1, 0, 0);
  put.kind = lapi::Kind::put;
  lapi::Message flagged = head(1, 0, 0);
  flagged.flags = lapi::data_by_address;
  lapi::Message pieces = head(1, 16, 0);
  pieces.pieces = 2;
  for (const lapi::Message& message :
       {put, flagged, pieces, head(1, UINT32_MAX, 0), head(1, 0, Link::most_data_bytes + 1),
        head(1, 0, UINT64_MAX)}) {
    Pair pair;
    pair.link->set(1, [](Unpacked&, std::string_view) -> Status { return {}; });
    EXPECT_FALSE(pair.hear(&message, lapi::message_head_bytes));
  }
}

TEST(DseLink, HeaderMustBeReadWhole) {
  for (const std::uint32_t len : {std::uint32_t{0}, std::uint32_t{7}, std::uint32_t{9}}) {
    Pair pair;
    pair.link->set(1, [](Unpacked& header, std::string_view) -> Status {
      std::ignore = header.number();
      return {};
    });
    std::string bytes(lapi::message_head_bytes + len, '\0');
    const auto message = head(1, len, 0);
    std::memcpy(bytes.data(), &message, lapi::message_head_bytes);
    const Status heard = pair.hear(bytes.data(), bytes.size());
    ASSERT_FALSE(heard) << len;
    EXPECT_THAT(heard.error().what, HasSubstr("malformed message for handler 1"));
  }
}

StartOrder some_order() {
  return {.job_tasks = 4,
          .meeting = "meet=x",
          .directory = "/tmp",
          .program = {"prog", "", "a b"},
          .environment = {"A=b", "C="},
          .tasks = {{2, true, {0, 5}}, {3, false, {}}}};
}

TEST(DseOrders, StartOrderArrivesAsItWasSent) {
  const auto order = unpack_start(pack(some_order()));
  ASSERT_TRUE(order) << describe(order.error());
  EXPECT_EQ(pack(*order), pack(some_order()));
  EXPECT_EQ(order->program, some_order().program);
  ASSERT_EQ(order->tasks.size(), 2U);
  EXPECT_EQ(order->tasks[0].cpus, (std::vector<int>{0, 5}));
  EXPECT_TRUE(order->tasks[0].has_input);
}

// Whatever is accepted keeps to the limits on which the daemon relies.
TEST(DseOrders, OtherBytesAreRefusedOrHarmless) {
  std::mt19937 random(7);
  const std::string whole = pack(some_order());
  for (std::size_t len = 0; len < whole.size(); ++len)
    EXPECT_FALSE(unpack_start(std::string_view(whole).substr(0, len))) << len;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (unsigned i = random() % 4 + 1; i > 0; --i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto order = unpack_start(bytes);
    if (!order) continue;
    EXPECT_FALSE(order->program.empty());
    EXPECT_GT(order->job_tasks, 0);
    for (const TaskOrder& task : order->tasks) EXPECT_LT(task.task, order->job_tasks);
  }
}

TEST(DseIntroduction, LineIsReadAsItWasWritten) {
  Introduction introduction{.number = 3, .place = {}};
  ASSERT_TRUE(make_key(introduction.place));
  introduction.place.endpoint_count = 1;
  auto& endpoint = reinterpret_cast<sockaddr_in&>(introduction.place.endpoints[0]);
  endpoint.sin_family = AF_INET;
  endpoint.sin_port = 0x1234;
  const std::string line = describe(introduction);
  const auto again = parse_introduction(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->number, 3);
  EXPECT_EQ(key_of(again->place), key_of(introduction.place));
  EXPECT_EQ(key_of(again->place).size(), 32U);
  EXPECT_EQ(describe(*again), line);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{2}, std::size_t{40}, line.size() - 4})
    EXPECT_FALSE(parse_introduction(std::string_view(line).substr(0, line.size() - 1 - cut)));
  EXPECT_FALSE(parse_introduction("shima-dse 2" + line.substr(11)));
}

TEST(DseVariables, NumbersOfOtherJobsAreNotInherited) {
  for (const char* name : {"PMI_RANK", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID",
                           "SHIMA_LAPI", "SHIMA_DSE_TASK", "SHIMA_DSE_TOPOLOGY"})
    EXPECT_TRUE(is_of_another_job(name)) << name;
  for (const char* name :
       {"PATH", "SLURM_JOB_ID", "SHIMA_DSE_SSH", "SHIMA_TRANSPORT", "OMPI_MCA_x"})
    EXPECT_FALSE(is_of_another_job(name)) << name;
}

}  // namespace
}  // namespace shima::dse
