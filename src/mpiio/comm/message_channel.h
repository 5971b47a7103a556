// A channel whose members run on several nodes: a NodeChannel near this member, and a private
// communicator between the nodes.
//
// combine() and agree() are meetings on each node, which the node leaders extend to all nodes.
// sum_in_order() is such a meeting and one nonblocking collective call of MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <vector>

#include "group/liveness/liveness.h"
#include "group/node_channel.h"
#include "group/pointer/shared_pointer.h"
#include "mpiio/comm/mpi_messenger.h"
#include "mpiio/comm/mpi_node_link.h"

namespace shima {

// The state that the channels of one communicator share.
struct MessageGround {
  std::shared_ptr<const NodeGround> near;
  bool can_pull = false;  // on every node
  // Of the shared file pointers: the service at rank 0, its client at the other ranks; neither if
  // the other ranks cannot reach rank 0.
  std::shared_ptr<PointerService> pointer_service;
  std::shared_ptr<PointerClient> pointer_client;
  std::shared_ptr<Liveness> liveness;

  // For waits: fails once a member was lost, on any node. Uses this ground.
  [[nodiscard]] Peers peers() const {
    Peers all;
    if (liveness) all = {[this] { return liveness->check(); }, &liveness->lost_word()};
    all.has_core = near && near->hooks.may_spin();
    return all;
  }
};

class MessageChannel final : public Channel {
 public:
  // Over `own`, a private communicator, which the channel frees; `key` is the file's own. Local:
  // agree() follows on all ranks.
  [[nodiscard]] static Result<std::unique_ptr<MessageChannel>> make(
      const std::shared_ptr<const MessageGround>& ground, MPI_Comm own, std::uint64_t key);
  // All ranks keep the channels that they have made, or all get an error; `own` is then freed, if
  // there is one. Collective over `over`.
  [[nodiscard]] static Result<std::unique_ptr<MessageChannel>> agree(
      Result<std::unique_ptr<MessageChannel>> made, MPI_Comm own, MPI_Comm over,
      const Peers& peers);
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;
  ~MessageChannel() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] const Topology& topology() const override { return near_->topology(); }
  [[nodiscard]] NodeRanks near_ranks() const override { return near_->near_ranks(); }
  [[nodiscard]] int near_index() const override { return near_->near_index(); }
  [[nodiscard]] std::int32_t near_pid(int index) const override { return near_->near_pid(index); }
  [[nodiscard]] Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                           JoinValues join) noexcept override {
    auto joined = near_->combine(mine, join);
    if (!joined) note(joined.error().code);
    return joined;
  }
  [[nodiscard]] Result<SumInOrder> sum_in_order(
      const Result<std::uint64_t>& mine) noexcept override;
  [[nodiscard]] Result<NearMessage> near_message(int index) override {
    return near_->near_message(index);
  }
  [[nodiscard]] Outcome agree_after(const Outcome& mine, WaitLength wait) noexcept override {
    const Outcome all = near_->agree(mine, wait);
    note(all.code);
    return all;
  }
  void begin_transfer() noexcept override;
  void end_transfer() noexcept override { near_->end_transfer(); }
  void quit_transfer() noexcept override;
  [[nodiscard]] bool transfer_quit() noexcept override;
  void wait_for_transfers() noexcept override;
  [[nodiscard]] StagingPool& staging() override { return near_->staging(); }
  [[nodiscard]] bool can_pull() const override { return ground_->can_pull; }
  [[nodiscard]] bool one_space() const override { return near_->one_space(); }
  [[nodiscard]] SharedWindows* windows() override { return near_->windows(); }
  [[nodiscard]] WriteRequests* write_requests() override { return near_->write_requests(); }
  [[nodiscard]] SharedPointer* shared_pointer() override { return shared_pointer_.get(); }
  [[nodiscard]] Messenger* messenger() override { return &messenger_; }

 private:
  // The memory of the MPI's collective call. MPI may still use it after the call has failed: then
  // it is kept until the process ends.
  struct Memory {
    std::uint64_t mine = 0;
    std::uint64_t before = 0;
  };

  MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key);
  // The outcome of a meeting. After the loss of a rank nothing more is asked of the MPI, which may
  // crash when it sends to that rank.
  void note(Code outcome) noexcept;
  [[nodiscard]] Status add_those_before();

  std::shared_ptr<const MessageGround> ground_;
  Peers peers_;
  MPI_Comm comm_;
  int rank_ = 0;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  bool owns_comm_ = false;
  bool lost_ = false;  // a collective call of the MPI is still under way and will never end
  MpiMessenger messenger_;
  MpiNodeLink link_;
  std::unique_ptr<NodeChannel> near_;
  std::unique_ptr<SharedPointer> shared_pointer_;
};

}  // namespace shima
