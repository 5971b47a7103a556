// The shared state of a node's members: the barrier that carries an outcome, the slots, the mark of
// a member's death.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "group/node/node_segment.h"
#include "group/node_channel.h"

namespace shima {
namespace {

std::vector<std::shared_ptr<NodeSegment>> members_of(const SharedBuffer& memory, int count) {
  std::vector<std::shared_ptr<NodeSegment>> members;
  for (int i = 0; i < count; ++i)
    members.push_back(NodeSegment::attach(memory.ref(), count, i).value());
  return members;
}

// Runs body(member) in a thread each.
template <class Body>
void in_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, EveryRoundBringsTheMaximaOfAll) {
  constexpr std::uint32_t members = 8;
  constexpr std::uint64_t rounds = 3000;
  Rendezvous meeting{};
  in_threads(members, [&](int me) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      // The largest is another member's in each round, and smaller than in the round before.
      const bool largest = round % members == static_cast<std::uint64_t>(me);
      const std::uint64_t mine = (rounds - round) * 2 + (largest ? 1 : 0);
      const auto all = meeting.arrive({mine, largest ? round : 0}, members, {});
      ASSERT_TRUE(all.has_value());
      ASSERT_EQ(all->first, (rounds - round) * 2 + 1);
      ASSERT_EQ(all->second, round);
    }
  });
}

TEST(Rendezvous, NobodyLeavesBeforeTheLastArrives) {
  constexpr int members = 5;
  Rendezvous meeting{};
  std::atomic<int> arrived{0};
  in_threads(members, [&](int me) {
    for (int round = 1; round <= 500; ++round) {
      if (me == round % members) std::this_thread::yield();
      ++arrived;
      ASSERT_TRUE(meeting.arrive({}, members, {}).has_value());
      ASSERT_GE(arrived.load(), round * members);
      ASSERT_TRUE(meeting.arrive({}, members, {}).has_value());
    }
  });
}

// Otherwise the last member to arrive would find all others counted, and continue alone.
TEST(Rendezvous, WhoComesLaterFindsItBroken) {
  Rendezvous meeting{};
  const auto lost = [] { return Status(fail(Code::peer_lost, "the third has ended")); };
  EXPECT_FALSE(meeting.arrive({}, 3, {.progress = {}, .peers = lost}).has_value());
  for (int later = 0; later < 3; ++later) {
    const auto met = meeting.arrive({}, 3, {});
    ASSERT_FALSE(met.has_value());
    EXPECT_EQ(met.error().code, Code::peer_lost);
  }
}

TEST(NodeSegment, MembersMeetInTheSlotOfAKey) {
  constexpr int count = 6;
  const auto memory = NodeSegment::make(count).value();
  const auto members = members_of(memory, count);
  in_threads(count, [&](int me) {
    NodeSegment& segment = *members[static_cast<std::size_t>(me)];
    ASSERT_TRUE(segment.introduce({}).has_value());
    for (std::uint64_t key = 1; key <= 400; ++key) {
      Slot* const slot = segment.enter(key).value();
      const auto all =
          slot->rendezvous.arrive({key * 10 + static_cast<std::uint64_t>(me), 0}, count, {});
      ASSERT_EQ(all->first, key * 10 + count - 1);
      segment.leave(slot);
    }
  });
}

// Several slots at once, entered and left by the members in different orders, by one thread per
// slot.
TEST(NodeSegment, SlotsDoNotMeetEachOther) {
  constexpr int count = 3;
  constexpr int files = 5;
  const auto memory = NodeSegment::make(count).value();
  const auto members = members_of(memory, count);
  in_threads(count * files, [&](int i) {
    NodeSegment& segment = *members[static_cast<std::size_t>(i % count)];
    for (std::uint64_t round = 0; round < 100; ++round) {
      const std::uint64_t key = static_cast<std::uint64_t>(i / count + 1) * 1000 + round;
      Slot* const slot = segment.enter(key).value();
      ASSERT_EQ(slot->rendezvous.arrive({key, 0}, count, {})->first, key);
      segment.leave(slot);
    }
  });
}

TEST(NodeSegment, AFullTableIsAnErrorAndPlacesAreUsedAgain) {
  constexpr std::uint64_t most = 960;  // of 1024: some may still be held by slower members
  const auto memory = NodeSegment::make(1).value();
  const auto segment = NodeSegment::attach(memory.ref(), 1, 0).value();
  std::vector<Slot*> slots;
  for (std::uint64_t key = 1; key <= most; ++key) {
    slots.push_back(segment->enter(key).value());
    ASSERT_TRUE(segment->open_members(slots.back()));
    segment->member(slots.back(), 0).transfer = static_cast<std::uint32_t>(key);
  }
  for (std::uint64_t key = 1; key <= most; ++key)  // no two slots share state
    ASSERT_EQ(segment->member(slots[key - 1], 0).transfer, key);
  EXPECT_EQ(std::set<Slot*>(slots.begin(), slots.end()).size(), most);
  const auto refused = segment->enter(most + 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::no_memory);
  EXPECT_NE(refused.error().what.find("960"), std::string::npos) << refused.error().what;
  segment->leave(slots[500]);
  EXPECT_EQ(segment->enter(most + 1).value(), slots[500]);
  EXPECT_FALSE(segment->enter(most + 2).has_value());
}

// Two processes; one arrives once and exits, the other gets an error at the next wait.
TEST(NodeSegment, TheDeathOfAMemberIsNoticed) {
  const auto memory = NodeSegment::make(2).value();
  const pid_t child = fork();
  const int me = child == 0 ? 1 : 0;
  const auto segment = NodeSegment::attach(memory.ref(), 2, me).value();
  const bool introduced = segment->introduce({}).has_value();
  if (child == 0) _exit(introduced ? 0 : 1);
  ASSERT_TRUE(introduced);
  WaitHooks hooks;
  hooks.peers = [&] { return segment->check_peers(); };
  const auto met = segment->enter(5).value()->rendezvous.arrive({}, 2, hooks);
  ASSERT_FALSE(met.has_value());
  EXPECT_EQ(met.error().code, Code::peer_lost);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Runs body(member) in one process each; returns how many did not return true.
template <class Body>
int failures_in_processes(int count, Body body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(body(i) ? 0 : 1);
  }
  int failed = 0;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) ++failed;
  }
  return failed;
}

std::shared_ptr<NodeGround> ground_of(const SharedBuffer& memory, int count, int me) {
  auto segment = NodeSegment::attach(memory.ref(), count, me);
  if (!segment) return nullptr;
  const WaitHooks hooks{.progress = {}, .peers = [own = *segment] { return own->check_peers(); }};
  if (!(*segment)->introduce(hooks)) return nullptr;
  auto ground = std::make_shared<NodeGround>();
  ground->segment = *segment;
  ground->staging = std::make_shared<StagingPool>();
  ground->topology = Topology(std::vector<Member>(static_cast<std::size_t>(count)));
  ground->hooks = hooks;
  return ground;
}

// Whether all members receive each member's number, in `len_bytes` bytes.
bool exchanges(NodeChannel& channel, std::size_t len_bytes) {
  const std::vector<std::byte> mine(len_bytes, static_cast<std::byte>(channel.rank()));
  if (!channel.combine(Contribution{.value = {}, .message = mine}, nullptr)) return false;
  for (int i = 0; i < channel.size(); ++i) {
    const auto message = channel.near_message(i);
    if (!message || message->bytes.size() != len_bytes ||
        message->bytes.back() != static_cast<std::byte>(i))
      return false;
  }
  return channel.agree({}).code == Code::ok;
}

// A process that exceeds the limit is killed, also by sizing shared memory.
void limit_file_sizes(rlim_t most_bytes) {
  const rlimit limit{most_bytes, most_bytes};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(NodeSegment, GrowsWithTheFilesThatAreOpen) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  EXPECT_LT(NodeSegment::make(1).value().bytes().size(), mib / 2);
  // Of each member's mailboxes only the pages that a message has used take memory.
  EXPECT_LT(NodeSegment::make(128).value().bytes().size(), 6 * mib);
  EXPECT_LT(NodeSegment::make(512).value().bytes().size(), 24 * mib);
}

// If the kernel has no automatic groups, all members are in one. The session of the test itself may
// be unknown (its first process is in another namespace): the members begin one.
TEST(NodeSegment, KnowsWhetherSessionsDiffer) {
  std::ifstream setting("/proc/sys/kernel/sched_autogroup_enabled");
  const bool has_groups = setting.get() == '1';
  for (const bool differ : {false, true}) {
    const bool expected = !(differ && has_groups);
    EXPECT_EQ(failures_in_processes(1,
                                    [&](int) {
                                      setsid();
                                      const auto memory = NodeSegment::make(3).value();
                                      return failures_in_processes(3, [&](int me) {
                                               if (differ && me == 1) setsid();
                                               const auto ground = ground_of(memory, 3, me);
                                               return ground &&
                                                      ground->segment->one_group() == expected;
                                             }) == 0;
                                    }),
              0)
        << differ;
  }
}

TEST(NodeSegment, HoldsManyMembersAndWorksUnderALimitOfFileSizes) {
  for (const int count : {3, 256}) {
    EXPECT_EQ(failures_in_processes(
                  1,
                  [&](int) {
                    if (count == 3) limit_file_sizes(1000);
                    const auto memory = NodeSegment::make(count);
                    if (!memory) return false;
                    return failures_in_processes(count, [&](int me) {
                             const auto ground = ground_of(*memory, count, me);
                             if (!ground) return false;
                             std::vector<std::unique_ptr<NodeChannel>> open;
                             for (std::uint64_t key = 1; key <= 5; ++key) {  // several chunks
                               open.push_back(NodeChannel::make(ground, key).value());
                               if (!exchanges(*open.back(), 100)) return false;
                             }
                             return exchanges(*open.back(), count == 3 ? 100'000 : 100);
                           }) == 0;
                  }),
              0)
        << count;
  }
}

// Memory that a single member cannot map is an error for all.
TEST(NodeChannel, AMemberWithoutDescriptorsFailsTheMeetingOfAll) {
  constexpr int count = 3;
  EXPECT_EQ(failures_in_processes(
                1,
                [&](int) {
                  const auto memory = NodeSegment::make(count).value();
                  return failures_in_processes(count, [&](int me) {
                           const auto ground = ground_of(memory, count, me);
                           if (!ground) return false;
                           const auto first = NodeChannel::make(ground, 1).value();
                           if (!exchanges(*first, 1)) return false;
                           const rlimit none{0, 1000};
                           if (me == 1 && setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
                           const auto second = NodeChannel::make(ground, 2).value();
                           const auto refused = second->combine(Contribution{}, nullptr);
                           if (refused || refused.error().code == Code::peer_lost) return false;
                           const rlimit some{1000, 1000};
                           if (me == 1 && setrlimit(RLIMIT_NOFILE, &some) != 0) return false;
                           return exchanges(*first, 1) && exchanges(*second, 1);
                         }) == 0;
                }),
            0);
}

// A member that gave up in one rendezvous must not be counted in the next, or the members that
// still wait would count it in place of the dead one and continue.
TEST(NodeChannel, WhoHasGivenUpIsNotCountedAgain) {
  constexpr int count = 3;
  const auto memory = NodeSegment::make(count).value();
  const auto members = members_of(memory, count);
  const pid_t child = fork();
  if (child == 0)
    _exit(NodeSegment::attach(memory.ref(), count, 2).value()->introduce({}).has_value() ? 0 : 1);
  in_threads(2, [&](int me) {
    auto ground = std::make_shared<NodeGround>();
    ground->segment = members[static_cast<std::size_t>(me)];
    ASSERT_TRUE(ground->segment->introduce({}).has_value());
    ground->staging = std::make_shared<StagingPool>();
    ground->topology = Topology(std::vector<Member>(count));
    ground->hooks.peers = [segment = ground->segment, me]() -> Status {
      if (me == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // detects it later
      return segment->check_peers();
    };
    const auto channel = NodeChannel::make(ground, 5).value();
    const auto messages = channel->combine(Contribution{}, nullptr);
    ASSERT_FALSE(messages.has_value());
    EXPECT_EQ(messages.error().code, Code::peer_lost);
    EXPECT_EQ(channel->agree({}).code, Code::peer_lost);
  });
  waitpid(child, nullptr, 0);
}

TEST(NodeSegment, LeavesNoDescriptorBehind) {
  const auto descriptors = [] {
    const int next = dup(0);
    close(next);
    return next;
  };
  const int before = descriptors();
  for (int i = 0; i < 20; ++i) {
    const auto memory = NodeSegment::make(2).value();
    members_of(memory, 2);
  }
  EXPECT_EQ(descriptors(), before);
  const auto memory = NodeSegment::make(1).value();
  const auto segment = members_of(memory, 1).front();
  const int with_memory = descriptors();
  std::vector<Slot*> slots;
  for (std::uint64_t key = 1; key <= 100; ++key) {
    slots.push_back(segment->enter(key).value());
    ASSERT_TRUE(segment->open_members(slots.back()));
  }
  for (Slot* const slot : slots) segment->leave(slot);
  EXPECT_EQ(descriptors(), with_memory);
}

}  // namespace
}  // namespace shima
