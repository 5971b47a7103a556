// A channel over several nodes whose network is memory: NodeChannels that leaders' messages join.
//
// It stands in for mpiio/comm/message_channel.h, and like that it meets in NodeChannel and in the
// rounds of RoundsLink.
#pragma once

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "group/agreement.h"
#include "group/combine_values.h"
#include "group/node_channel.h"
#include "group/outcome_words.h"
#include "group/rounds_link.h"
#include "post_office.h"

namespace shima::test {

// Shared by the members of all nodes.
struct Network {
  explicit Network(std::size_t members) {
    for (auto& all : numbers) all.resize(members);
  }
  PostOffice messages;                                // between members
  PostOffice between_leaders;                         // their meetings
  Rendezvous meeting{};                               // of all members
  std::array<std::vector<std::uint64_t>, 2> numbers;  // by rank; used in turn
  std::atomic<std::uint32_t> quit{0};                 // number of the transfer
  SharedPointerWords pointer{};
};

class MemoryLink final : public RoundsLink {
 public:
  MemoryLink(PostOffice& office, const Topology& topology, int node, std::function<void()> poll)
      : RoundsLink(topology, node), office_(office), poll_(std::move(poll)) {}
  void poll() noexcept override { poll_(); }

 private:
  Status swap(int peer, const Note* out, Note* in) override {
    if (out != nullptr) office_.send({rank(), peer, {}}, bytes_of(*out));
    if (in != nullptr) {
      const auto message = office_.wait_for_next({peer, rank(), {}});
      std::memcpy(in, message.data(), sizeof *in);
    }
    return {};
  }

  PostOffice& office_;
  std::function<void()> poll_;
};

class SeveralNodesChannel final : public Channel {
 public:
  static Result<std::unique_ptr<SeveralNodesChannel>> make(
      const std::shared_ptr<const NodeGround>& ground, std::uint64_t key, Network& network,
      bool can_pull) {
    std::unique_ptr<SeveralNodesChannel> made(new SeveralNodesChannel(ground, network, can_pull));
    SHIMA_TRY_ASSIGN(made->near_, NodeChannel::make_near(ground, key, made->link_));
    return made;
  }

  int rank() const override { return rank_; }
  const Topology& topology() const override { return near_->topology(); }
  NodeRanks near_ranks() const override { return near_->near_ranks(); }
  int near_index() const override { return near_->near_index(); }
  std::int32_t near_pid(int index) const override { return near_->near_pid(index); }
  Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                             JoinValues join) noexcept override {
    return near_->combine(mine, join);
  }
  Result<SumInOrder> sum_in_order(const Result<std::uint64_t>& mine) noexcept override {
    turn_ = 1 - turn_;
    auto& numbers = network_.numbers[turn_];
    if (mine) numbers[static_cast<std::size_t>(rank_)] = *mine;
    const Status ready = status_of(mine);
    SHIMA_TRY_ASSIGN(const auto met, meet_all(words_of(outcome_of(*this, ready)).first));
    SHIMA_TRY(settled(*this, outcome_of({met.first, 0}), ready, "adding up"));
    SumInOrder sum;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i == static_cast<std::size_t>(rank_)) sum.before = sum.all;
      sum.all = add_up(sum.all, numbers[i]);
    }
    return sum;
  }
  Result<NearMessage> near_message(int index) override { return near_->near_message(index); }
  Outcome agree_after(const Outcome& mine, WaitLength wait) noexcept override {
    return near_->agree(mine, wait);
  }

  void begin_transfer() noexcept override {
    ++transfers_;
    near_->begin_transfer();
  }
  void end_transfer() noexcept override { near_->end_transfer(); }
  void quit_transfer() noexcept override {
    near_->quit_transfer();
    network_.quit = transfers_;
  }
  // The node leader hears of members elsewhere, and tells the members near it.
  bool transfer_quit() noexcept override {
    if (near_->transfer_quit()) return true;
    if (near_index() != 0 || network_.quit != transfers_) return false;
    near_->quit_transfer();
    return true;
  }
  void wait_for_transfers() noexcept override {
    near_->wait_for_transfers();
    std::ignore = meet_all(0);
    messenger_.drop();
    std::ignore = meet_all(0);
  }

  StagingPool& staging() override { return near_->staging(); }
  bool can_pull() const override { return can_pull_ && near_->can_pull(); }
  bool one_space() const override { return near_->one_space(); }
  SharedWindows* windows() override { return near_->windows(); }
  SharedPointer* shared_pointer() override { return &shared_pointer_; }
  WriteRequests* write_requests() override {
    return can_pull() ? near_->write_requests() : nullptr;
  }
  Messenger* messenger() override { return &messenger_; }

 private:
  SeveralNodesChannel(const std::shared_ptr<const NodeGround>& ground, Network& network,
                      bool can_pull)
      : network_(network),
        rank_(ground->topology.ranks_on(
            ground->node)[static_cast<std::size_t>(ground->segment->index())]),
        hooks_(ground->hooks),
        messenger_(network.messages, rank_),
        link_(network.between_leaders, ground->topology, ground->node,
              [this] { std::ignore = transfer_quit(); }),
        shared_pointer_(network.pointer),
        can_pull_(can_pull) {}
  Result<Rendezvous::Maxima> meet_all(std::uint64_t worst) {
    return network_.meeting.arrive({worst, 0}, static_cast<std::uint32_t>(size()), hooks_);
  }

  Network& network_;
  int rank_;
  WaitHooks hooks_;
  QueueMessenger messenger_;
  MemoryLink link_;
  std::unique_ptr<NodeChannel> near_;
  PointerInMemory shared_pointer_;
  bool can_pull_;
  std::uint32_t transfers_ = 0;  // started so far
  std::size_t turn_ = 0;
};

}  // namespace shima::test
