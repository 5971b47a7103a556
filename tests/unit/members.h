// Threads that act as the members of a communicator, for tests of everything below MPI.
//
// The members of each node share a real node segment. A network in memory connects the nodes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "several_nodes.h"

namespace shima::test {

// Where the next rank runs.
enum class Placement { blocks, round_robin, dealt_to_domains };

struct World {
  int members = 1;
  int cores = 2;  // of each node
  int nodes = 1;
  Placement placement = Placement::blocks;
  bool can_pull_across = true;  // whether members of a node pull; used only if nodes > 1
  bool one_space = false;       // whether they use the address space that they share
  // The rank of a member in a process of its own, which ends with the body; not a node leader. If
  // nodes > 1, only combine() and agree() work there.
  int in_process = -1;
  bool watches_peers = true;  // in waits, which costs system calls for each member

  [[nodiscard]] Topology topology() const { return Topology(places()); }
  [[nodiscard]] std::vector<Member> places() const {
    std::vector<Member> places;
    for (int i = 0; i < members; ++i) {
      places.push_back(
          {placement == Placement::round_robin ? i % nodes : i * nodes / members, cores});
      if (placement == Placement::dealt_to_domains) places.back().numa_domain = 3 - i % 3;
    }
    return places;
  }
};

using MemberBody = std::function<void(std::unique_ptr<Channel>)>;

// What the members of a world have in common before they have channels.
struct WorldGround {
  explicit WorldGround(const World& of)
      : world(of), topology(of.topology()), network(static_cast<std::size_t>(of.members)) {
    for (int node = 0; node < topology.node_count(); ++node)
      segments.push_back(
          NodeSegment::make(static_cast<int>(topology.ranks_on(node).size())).value());
  }

  void run_member(int rank, const MemberBody& body) {
    auto ground = std::make_shared<NodeGround>();
    ground->node = topology.node_of(rank);
    auto segment = NodeSegment::attach(segments[static_cast<std::size_t>(ground->node)].ref(),
                                       static_cast<int>(topology.ranks_on(ground->node).size()),
                                       topology.index_of(rank));
    ASSERT_TRUE(segment.has_value());
    ASSERT_TRUE((*segment)->introduce({}).has_value());
    ground->segment = *segment;
    ground->staging = std::make_shared<StagingPool>();
    if (world.watches_peers) ground->hooks.peers = [own = *segment] { return own->check_peers(); };
    ground->near_pids.assign(topology.ranks_on(ground->node).size(), ::getpid());
    ground->topology = topology;
    ground->one_space = world.one_space;
    constexpr std::uint64_t key = 7;
    if (world.nodes == 1) {
      auto channel = NodeChannel::make(ground, key);
      ASSERT_TRUE(channel.has_value());
      return body(*std::move(channel));
    }
    auto channel = SeveralNodesChannel::make(ground, key, network, world.can_pull_across);
    ASSERT_TRUE(channel.has_value());
    body(*std::move(channel));
  }

  const World& world;
  Topology topology;
  Network network;
  std::vector<SharedBuffer> segments;  // by node
};

// Runs `body` as each member, in a separate thread with its own channel. Adds what the members sent
// by their messengers to `traffic`.
inline void run_members(const World& world, const MemberBody& body, Traffic* traffic = nullptr) {
  WorldGround ground(world);
  pid_t process = 0;
  if (world.in_process >= 0 && (process = ::fork()) == 0) {
    ground.run_member(world.in_process, body);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.members; ++rank)
    if (rank != world.in_process)
      threads.emplace_back([&, rank] { ground.run_member(rank, body); });
  for (std::thread& thread : threads) thread.join();
  if (process != 0) {
    int status = -1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0) << "rank " << world.in_process;
  }
  EXPECT_TRUE(ground.network.messages.is_empty());
  if (traffic != nullptr)
    for (const auto& [pair, sent] : ground.network.messages.traffic()) {
      (*traffic)[pair].messages += sent.messages;
      (*traffic)[pair].len_bytes += sent.len_bytes;
    }
}

}  // namespace shima::test
