// Threads that act as the members of a communicator, for tests of everything below MPI.
//
// They share a real node segment. For a test of several nodes, members get different node numbers
// and send messages through queues in memory.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "group/messenger.h"
#include "group/node_channel.h"

namespace shima::test {

// Messages between threads; each pair keeps its order.
class PostOffice {
 public:
  void put(int from, int to, std::span<const std::byte> data) {
    const std::lock_guard lock(mutex_);
    queues_[{from, to}].emplace_back(data.begin(), data.end());
  }
  bool get(int from, int to, std::vector<std::byte>& message) {
    const std::lock_guard lock(mutex_);
    auto& queue = queues_[{from, to}];
    if (queue.empty()) return false;
    message = std::move(queue.front());
    queue.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> queues_;
};

class QueueMessenger final : public Messenger {
 public:
  QueueMessenger(PostOffice& office, int rank) : office_(office), rank_(rank) {}
  Result<Ticket> send(int to, Buffer data) override {
    office_.put(rank_, to, data);
    pending_[next_] = {-1, data.size()};
    return next_++;
  }
  Result<Ticket> receive(int from, std::uint64_t len_bytes) override {
    pending_[next_] = {from, len_bytes};
    return next_++;
  }
  Result<std::optional<Buffer>> done(Ticket ticket) override {
    const Pending& pending = pending_.at(ticket);
    Buffer message;
    if (pending.from >= 0) {
      if (!office_.get(pending.from, rank_, message)) return std::nullopt;
      EXPECT_LE(message.size(), pending.len_bytes);
    }
    pending_.erase(ticket);
    return message;
  }
  void rest() override { std::this_thread::yield(); }
  void moved() override {}

 private:
  struct Pending {
    int from = -1;
    std::uint64_t len_bytes = 0;
  };
  PostOffice& office_;
  int rank_;
  Ticket next_ = 1;
  std::map<Ticket, Pending> pending_;
};

// A node channel that reports several nodes.
class SeveralNodesChannel final : public Channel {
 public:
  SeveralNodesChannel(std::unique_ptr<NodeChannel> inner, std::vector<Member> members,
                      PostOffice& office, bool can_pull)
      : inner_(std::move(inner)),
        members_(std::move(members)),
        messenger_(office, inner_->rank()),
        can_pull_(can_pull) {}
  int rank() const override { return inner_->rank(); }
  const std::vector<Member>& members() const override { return members_; }
  Result<Messages> exchange(const Result<std::span<const std::byte>>& mine) noexcept override {
    return inner_->exchange(mine);
  }
  Outcome agree(const Outcome& mine) noexcept override { return inner_->agree(mine); }
  void begin_transfer() noexcept override { inner_->begin_transfer(); }
  void end_transfer() noexcept override { inner_->end_transfer(); }
  void quit_transfer() noexcept override { inner_->quit_transfer(); }
  bool transfer_quit() noexcept override { return inner_->transfer_quit(); }
  void wait_for_transfers() noexcept override { inner_->wait_for_transfers(); }
  StagingPool& staging() override { return inner_->staging(); }
  bool can_pull() const override { return can_pull_; }
  bool one_space() const override { return inner_->one_space(); }
  SharedWindows* windows() override { return nullptr; }
  SharedPointer* shared_pointer() override { return inner_->shared_pointer(); }
  WriteRequests* write_requests() override { return nullptr; }
  Messenger* messenger() override { return &messenger_; }

 private:
  std::unique_ptr<NodeChannel> inner_;
  std::vector<Member> members_;
  QueueMessenger messenger_;
  bool can_pull_;
};

struct World {
  int members = 1;
  int cores = 2;
  int nodes = 1;
  bool can_pull_across = true;  // used only if nodes > 1
  bool one_space = false;       // whether they use the address space that they share
};

// Runs `body` as each member, in a separate thread with its own channel.
inline void run_members(const World& world,
                        const std::function<void(std::unique_ptr<Channel>)>& body) {
  auto memory = NodeSegment::make(world.members);
  ASSERT_TRUE(memory.has_value());
  PostOffice office;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.members; ++rank) {
    threads.emplace_back([&, rank] {
      auto segment = NodeSegment::attach(memory->ref(), world.members, rank);
      ASSERT_TRUE(segment.has_value());
      ASSERT_TRUE((*segment)->introduce({}).has_value());
      auto ground = std::make_shared<NodeGround>();
      ground->segment = *segment;
      ground->one_space = world.one_space;
      ground->staging = std::make_shared<StagingPool>();
      for (int i = 0; i < world.members; ++i)
        ground->members.push_back({i * world.nodes / world.members, ::getpid(), world.cores});
      auto channel = NodeChannel::make(ground, 7);
      ASSERT_TRUE(channel.has_value());
      if (world.nodes == 1) return body(*std::move(channel));
      body(std::make_unique<SeveralNodesChannel>(*std::move(channel), ground->members, office,
                                                 world.can_pull_across));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace shima::test
