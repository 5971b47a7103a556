// The channel and the messenger in memory that stand in for an MPI in the tests of collective
// calls.
#include <gtest/gtest.h>

#include <string>

#include "members.h"

namespace shima {
namespace {

using test::Placement;

MessageBuffer bytes_with(std::size_t len_bytes, int value) {
  MessageBuffer buffer(len_bytes);
  std::ranges::fill(buffer.bytes(), static_cast<std::byte>(value));
  return buffer;
}

std::vector<std::byte> contents(const MessageBuffer& buffer) {
  return {buffer.bytes().begin(), buffer.bytes().end()};
}

std::vector<std::byte> wait_for(Messenger& messenger, Messenger::Ticket ticket) {
  while (true) {
    if (const auto message = messenger.done(ticket).value()) return contents(*message);
    std::this_thread::sleep_for(messenger.pause());
  }
}

TEST(SeveralNodes, MembersAreNearThoseOfTheirNode) {
  for (const Placement placement : {Placement::blocks, Placement::round_robin}) {
    const test::World world{.members = 7, .nodes = 3, .placement = placement};
    test::run_members(world, [&](std::unique_ptr<Channel> channel) {
      ASSERT_EQ(channel->size(), 7);
      const int node = channel->topology().node_of(channel->rank());
      EXPECT_EQ(node,
                placement == Placement::blocks ? channel->rank() * 3 / 7 : channel->rank() % 3);
      EXPECT_EQ(channel->near_ranks().size(), channel->topology().ranks_on(node).size());
      EXPECT_EQ(channel->near_ranks()[static_cast<std::size_t>(channel->near_index())],
                channel->rank());
      EXPECT_NE(channel->windows(), nullptr);
      EXPECT_EQ(channel->write_requests() != nullptr, channel->near_ranks().size() > 1);
    });
  }
}

// The first receive gets the first message, also if the second is polled first.
TEST(SeveralNodes, MessagesKeepTheirOrderAndAreCounted) {
  const test::World world{.members = 4, .nodes = 2};
  constexpr int messages = 50;
  test::Traffic traffic;
  test::run_members(
      world,
      [&](std::unique_ptr<Channel> channel) {
        Messenger& messenger = *channel->messenger();
        const int me = channel->rank();
        std::vector<Messenger::Ticket> tickets;
        for (int i = 0; i < messages; ++i) {
          if (me == 0)
            tickets.push_back(messenger.send(3, Lane::to_agent, bytes_with(10, i)).value());
          if (me == 3)
            tickets.push_back(messenger.receive(0, Lane::to_agent, MessageBuffer(20)).value());
        }
        for (int i = static_cast<int>(tickets.size()) - 1; i >= 0; --i) {
          const auto data = wait_for(messenger, tickets[static_cast<std::size_t>(i)]);
          if (me == 3) {
            EXPECT_EQ(data, contents(bytes_with(10, i)));
          }
        }
      },
      &traffic);
  ASSERT_EQ(traffic.size(), 1U);
  EXPECT_EQ((traffic[{0, 3}].messages), 50U);
  EXPECT_EQ((traffic[{0, 3}].len_bytes), 500U);
}

TEST(SeveralNodes, SendEndsWithItsReceive) {
  const test::World world{.members = 2, .nodes = 2};
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    Messenger& messenger = *channel->messenger();
    if (channel->rank() == 0) {
      const auto ticket = messenger.send(1, Lane::to_agent, {}).value();
      EXPECT_FALSE(messenger.done(ticket).value().has_value());
      std::ignore = channel->agree({});
      wait_for(messenger, ticket);
    } else {
      std::ignore = channel->agree({});
      wait_for(messenger, messenger.receive(0, Lane::to_agent, MessageBuffer(0)).value());
    }
  });
}

// All members notice it; afterwards nothing is under way, and the next transfer is not affected.
TEST(SeveralNodes, TransferThatAMemberQuitsLeavesNothing) {
  const test::World world{.members = 6, .nodes = 3, .placement = Placement::round_robin};
  test::run_members(world, [&](std::unique_ptr<Channel> channel) {
    Messenger& messenger = *channel->messenger();
    const int me = channel->rank();
    const int next = (me + 1) % world.members;
    const int before = (me + world.members - 1) % world.members;
    for (int round = 0; round < 5; ++round) {
      channel->begin_transfer();
      if (round % 2 == 0) {
        std::ignore = messenger.send(next, Lane::to_agent, bytes_with(100, round));
        if (me % 2 == 0) std::ignore = messenger.receive(next, Lane::to_agent, MessageBuffer(100));
        if (me == round) channel->quit_transfer();
        while (!channel->transfer_quit()) std::this_thread::sleep_for(messenger.pause());
        channel->end_transfer();
        EXPECT_EQ(channel->agree({.code = Code::io, .rank = me}).code, Code::io);
        channel->wait_for_transfers();
        continue;
      }
      const auto sent = messenger.send(next, Lane::to_agent, bytes_with(5, round)).value();
      EXPECT_EQ(
          wait_for(messenger, messenger.receive(before, Lane::to_agent, MessageBuffer(5)).value()),
          contents(bytes_with(5, round)));
      wait_for(messenger, sent);
      EXPECT_FALSE(channel->transfer_quit());
      channel->end_transfer();
      EXPECT_EQ(channel->agree({}).code, Code::ok);
    }
  });
}

}  // namespace
}  // namespace shima
