// How tasks of LAPI on several hosts meet, and whom the meeting place refuses.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>

#include "lapi/engine.h"
#include "lapi/way/meeting_place.h"

namespace shima::lapi {
namespace {

ServiceAddress some_meeting() {
  ServiceAddress place{.endpoint_count = 2};
  auto& v4 = reinterpret_cast<sockaddr_in&>(place.endpoints[0]);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(4711);
  v4.sin_addr.s_addr = htonl(0x0a4d0001);
  place.endpoints[1].sin6_family = AF_INET6;
  place.endpoints[1].sin6_port = htons(12);
  place.endpoints[1].sin6_addr.s6_addr[15] = 1;
  place.asker[3] = std::byte{0xa7};
  place.keeper[15] = std::byte{0x0b};
  return place;
}

TEST(LapiMeeting, IsParsedAsDescribed) {
  const std::string text = describe(some_meeting());
  EXPECT_TRUE(text.starts_with("meet=10.77.0.1:4711,[::1]:12 key=000000a7")) << text;
  const auto place = parse_meeting(text.c_str());
  ASSERT_TRUE(place);
  EXPECT_EQ(describe(*place), text);
  for (std::string wrong : {std::string(), text.substr(1), text + "0", text.substr(0, 60),
                            "meet=10.0.0.1:70000 " + text.substr(text.find("key"))})
    EXPECT_FALSE(parse_meeting(wrong.c_str())) << wrong;
  EXPECT_FALSE(parse_meeting(nullptr));
}

TEST(LapiMeeting, RefusesTasksThatFormNoJob) {
  auto place = MeetingPlace::start(shared_with({}, {}));
  ASSERT_TRUE(place);
  const auto enter = [&](int task, int count) {
    return Ways::over_hosts((*place)->address(), {.task = task, .tasks = count}, {});
  };
  auto first = enter(0, 3);
  ASSERT_TRUE(first);
  for (const int count : {3, 4}) {
    auto second = enter(0, count);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::not_same);
  }
}

TEST(LapiMeeting, TellsOfTasksThatEndBeforeTheyJoin) {
  auto place = MeetingPlace::start(shared_with({}, {}));
  ASSERT_TRUE(place);
  const auto enter = [&](int task) {
    return Ways::over_hosts((*place)->address(), {.task = task, .tasks = 4, .host = {'a'}},
                            {.same_process = true});
  };
  const auto settles_at = [](Ways& ways, int task, Standing expected) {
    const auto until = Clock::now() + std::chrono::seconds(10);
    while (ways.to(task).standing(task) != expected && Clock::now() < until)
      std::this_thread::yield();
    return ways.to(task).standing(task) == expected;
  };
  auto first = enter(0);
  ASSERT_TRUE(first);
  ASSERT_TRUE((*first)->watch({.on_lost = [](int) {}, .serve = [] {}}));
  for (const auto kind : {MeetingNotice::Kind::none, MeetingNotice::Kind::goodbye}) {
    const bool leaves = kind != MeetingNotice::Kind::none;
    auto process = connect_to((*place)->address(), std::chrono::seconds(5));
    ASSERT_TRUE(process);
    ASSERT_TRUE(
        send_notice(process->get(),
                    {.kind = MeetingNotice::Kind::started, .task = leaves ? 2 : 1, .tasks = 4}));
    if (leaves) {
      ASSERT_TRUE(send_notice(process->get(), {.kind = kind}));
    }
  }
  auto late = enter(3);
  ASSERT_TRUE(late);
  ASSERT_TRUE((*late)->watch({.on_lost = [](int) {}, .serve = [] {}}));
  for (Ways* ways : {first->get(), late->get()}) {
    EXPECT_TRUE(settles_at(*ways, 1, Standing::lost));
    EXPECT_TRUE(settles_at(*ways, 2, Standing::left));
  }
}

TEST(LapiMeeting, RefusesAWrongSecret) {
  auto place = MeetingPlace::start(shared_with({}, {}));
  ASSERT_TRUE(place);
  ServiceAddress address = (*place)->address();
  address.asker[0] ^= std::byte{1};
  const auto ways = Ways::over_hosts(address, {.task = 0, .tasks = 1}, {});
  ASSERT_FALSE(ways);
  EXPECT_EQ(ways.error().code, Code::bad_handle);
}

TEST(LapiMeeting, RefusesATaskOfAnotherVersion) {
  auto place = MeetingPlace::start(shared_with({}, {}));
  ASSERT_TRUE(place);
  const auto socket = connect_to((*place)->address(), std::chrono::seconds(5));
  ASSERT_TRUE(socket);
  const MeetingNotice other{.format = meeting_format + 1, .kind = MeetingNotice::Kind::join};
  MeetingNotice answer{};
  ASSERT_TRUE(send_notice(socket->get(), other));
  ASSERT_TRUE(receive_all(socket->get(), &answer, sizeof answer));
  EXPECT_EQ(answer.kind, MeetingNotice::Kind::refused);
  EXPECT_EQ(answer.format, meeting_format);
  EXPECT_FALSE(receive_all(socket->get(), &answer, 1)) << "the connection is still open";
}

TEST(LapiMeeting, OfAnotherVersionIsRefused) {
  Server::Handlers handlers;
  handlers.message_bytes = sizeof(MeetingNotice);
  handlers.serve = [](Server&, Server::Visitor& visitor) {
    return send_notice(visitor.socket.get(),
                       {.format = meeting_format + 1, .kind = MeetingNotice::Kind::make});
  };
  auto place = Server::start(shared_with({}, {}), {}, handlers);
  ASSERT_TRUE(place);
  const auto ways = Ways::over_hosts((*place)->address(), {.task = 0, .tasks = 1}, {});
  ASSERT_FALSE(ways);
  EXPECT_EQ(ways.error().code, Code::not_same);
  EXPECT_NE(std::string(ways.error().what.c_str()).find("another version of Shima"),
            std::string::npos);
}

TEST(LapiPlace, IsParsedAsDescribed) {
  const auto place = parse_job_place(describe({.descriptor = 7, .task = 2, .tasks = 4}).c_str());
  ASSERT_TRUE(place);
  EXPECT_EQ(place->descriptor, 7);
  EXPECT_EQ(place->task, 2);
  EXPECT_EQ(place->tasks, 4);
  for (const char* wrong : {"", "fd=1", "fd=1 task=4 tasks=4", "fd=-1 task=0 tasks=1",
                            "fd=1 task=0 tasks=2000", "fd=1 task=0 tasks=1x"})
    EXPECT_FALSE(parse_job_place(wrong)) << wrong;
  EXPECT_FALSE(parse_job_place(nullptr));
}

}  // namespace
}  // namespace shima::lapi
