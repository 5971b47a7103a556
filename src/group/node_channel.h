// A channel of members on one node: all communication uses the node segment.
//
// It is also the near part of a channel over several nodes: then a NodeLink extends combine() and
// agree() to the other nodes, and its owner provides sum_in_order().
#pragma once

#include <memory>
#include <optional>

#include "group/channel.h"
#include "group/node/node_segment.h"
#include "group/node/shared_windows.h"
#include "group/node/write_requests.h"
#include "group/node_link.h"
#include "group/pointer/shared_pointer.h"
#include "ipc/staging_pool.h"

namespace shima {

// Shared by the channels of one communicator on one node.
struct NodeGround {
  std::shared_ptr<NodeSegment> segment;
  std::shared_ptr<StagingPool> staging;
  WaitHooks hooks;
  std::vector<std::int32_t> near_pids;  // the processes of this node, by index
  Topology topology;                    // of all nodes
  int node = 0;                         // this one
  bool one_space = false;               // its members share one address space
  std::string_view member_word = "rank";
};

class NodeChannel final : public Channel {
 public:
  // Enters the slot of `key`; every member of the segment creates the channel of each key once. A
  // member that fails tells the others, whose first meeting then ends with its error.
  [[nodiscard]] static Result<std::unique_ptr<NodeChannel>> make(
      std::shared_ptr<const NodeGround> ground, std::uint64_t key);
  // The same for a group over several nodes. A member that fails does not tell the
  // others: its caller does.
  [[nodiscard]] static Result<std::unique_ptr<NodeChannel>> make_near(
      std::shared_ptr<const NodeGround> ground, std::uint64_t key, NodeLink& link);
  NodeChannel(const NodeChannel&) = delete;
  NodeChannel& operator=(const NodeChannel&) = delete;
  ~NodeChannel() override;

  [[nodiscard]] int rank() const override {
    return near_ranks()[static_cast<std::size_t>(near_index())];
  }
  [[nodiscard]] const Topology& topology() const override { return ground_->topology; }
  [[nodiscard]] NodeRanks near_ranks() const override {
    return ground_->topology.ranks_on(ground_->node);
  }
  [[nodiscard]] int near_index() const override { return ground_->segment->index(); }
  [[nodiscard]] std::int32_t near_pid(int index) const override {
    return ground_->near_pids[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::string_view member_word() const override { return ground_->member_word; }
  [[nodiscard]] Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                           JoinValues join) noexcept override;
  [[nodiscard]] Result<SumInOrder> sum_in_order(
      const Result<std::uint64_t>& mine) noexcept override;
  [[nodiscard]] Result<NearMessage> near_message(int index) override;
  [[nodiscard]] Outcome agree_after(const Outcome& mine, WaitLength wait) noexcept override;
  void begin_transfer() noexcept override;
  void end_transfer() noexcept override;
  void quit_transfer() noexcept override;
  [[nodiscard]] bool transfer_quit() noexcept override;
  void wait_for_transfers() noexcept override;
  [[nodiscard]] StagingPool& staging() override { return *ground_->staging; }
  [[nodiscard]] bool can_pull() const override { return ground_->segment->can_pull(); }
  [[nodiscard]] bool one_space() const override { return ground_->one_space; }
  [[nodiscard]] SharedWindows* windows() override { return &windows_; }
  [[nodiscard]] WriteRequests* write_requests() override {
    return can_pull() && near_count() > 1 ? &requests_ : nullptr;
  }
  [[nodiscard]] SharedPointer* shared_pointer() override { return &shared_pointer_; }
  [[nodiscard]] Messenger* messenger() override { return nullptr; }

 private:
  NodeChannel(std::shared_ptr<const NodeGround> ground, Slot* slot, NodeLink* link);
  [[nodiscard]] int near_count() const { return ground_->segment->member_count(); }
  [[nodiscard]] Mailbox& mailbox(int index) const {
    return ground_->segment->member(slot_, index).mailboxes[turn_];
  }
  // The values that a meeting joins, none by default, and the work that one member of a node does
  // once all near it have come, which may make the meeting fail.
  struct Joining {
    JoinValues join = nullptr;
    std::size_t len_bytes = 0;
    std::optional<FunctionRef<void(Rendezvous::Maxima&)>> work{};
    WaitLength wait = WaitLength::unknown;
  };
  [[nodiscard]] std::span<std::byte> value_of(int index, std::size_t len_bytes) const {
    return std::span(ground_->segment->member(slot_, index).values[turn_]).first(len_bytes);
  }
  [[nodiscard]] WaitLength near_wait(WaitLength length) const;
  // Joins the values of this node into the first; returns it. All members must have one.
  std::span<std::byte> join_values(const Joining& values);
  [[nodiscard]] Status put_message(std::span<const std::byte> message);
  [[nodiscard]] Status put_lasting(const LastingPart* part);
  [[nodiscard]] Result<std::span<const std::byte>> message_of(int index) const;
  [[nodiscard]] Result<Rendezvous::Maxima> meet(Rendezvous::Maxima mine, Joining values);
  [[nodiscard]] Result<Rendezvous::Maxima> lead_meeting(Rendezvous::Maxima mine, Joining values);

  std::shared_ptr<const NodeGround> ground_;
  Slot* slot_;
  NodeLink* link_;  // null: all members are on this node
  WaitHooks hooks_;
  WaitHooks meeting_hooks_;
  SharedWindows windows_;
  WriteRequests requests_;
  PointerInMemory shared_pointer_;
  std::uint32_t transfers_ = 0;         // started so far; the same on all members
  std::size_t turn_ = 0;                // index of the mailbox for the messages of this meeting
  std::array<SharedBuffer, 2> spills_;  // for messages that do not fit the mailbox
  SharedBuffer lasting_;                // the lasting part of this member's message
  std::uint64_t lasting_serial_ = 0;
};

}  // namespace shima
