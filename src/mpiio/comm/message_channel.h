// A channel whose members run on several nodes: a NodeChannel near this member, and a private
// communicator between the nodes.
//
// combine() and agree() are meetings on each node, which the node leaders extend to all nodes.
// exchange() is one nonblocking collective call of MPI, whose memory the channel allocates when it
// is created. Short messages travel in that call. Long messages need a second call, after all
// members have allocated memory for them.
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
    if (!liveness) return {};
    return {[this] { return liveness->check(); }, &liveness->lost_word()};
  }
};

class MessageChannel final : public Channel {
 public:
  // Duplicates `comm`; `key` is the file's own. Collective over it: all ranks get a channel or all
  // get an error.
  [[nodiscard]] static Result<std::unique_ptr<MessageChannel>> make(
      std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key);
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;
  ~MessageChannel() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] const Topology& topology() const override { return near_->topology(); }
  [[nodiscard]] NodeRanks near_ranks() const override { return near_->near_ranks(); }
  [[nodiscard]] int near_index() const override { return near_->near_index(); }
  [[nodiscard]] std::int32_t near_pid(int index) const override { return near_->near_pid(index); }
  [[nodiscard]] Result<Messages> exchange(
      const Result<std::span<const std::byte>>& mine) noexcept override;
  [[nodiscard]] Result<std::span<const std::byte>> combine(const Result<Contribution>& mine,
                                                           JoinValues join) noexcept override {
    auto joined = near_->combine(mine, join);
    if (!joined) note(joined.error().code);
    return joined;
  }
  [[nodiscard]] Result<NearMessage> near_message(int index) override {
    return near_->near_message(index);
  }
  [[nodiscard]] Outcome agree(const Outcome& mine) noexcept override {
    const Outcome all = near_->agree(mine);
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
  // A member's part of an exchange: its message, or the beginning of a long one.
  struct Envelope {
    static constexpr std::size_t inline_bytes = 488;
    std::uint64_t worst;  // the outcome's first word
    std::uint64_t len_bytes;
    std::array<std::byte, inline_bytes> data;
  };
  // All memory that exchanges read and write. MPI may still use it after an exchange has failed:
  // then it is kept until the process ends.
  struct Memory {
    explicit Memory(std::size_t members);
    Envelope mine{};
    std::array<std::vector<Envelope>, 2> envelopes;  // of this exchange and of the one before
    std::array<std::vector<std::byte>, 2> bodies;    // of long messages
    std::vector<std::byte> body;                     // this member's long message
    std::array<std::vector<std::span<const std::byte>>, 2> messages;
    std::vector<std::uint64_t> lens;
    std::vector<int> counts;
    std::vector<int> starts;
  };

  MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key);
  // The outcome of a meeting. After the loss of a rank nothing more is asked of the MPI, which may
  // crash when it sends to that rank.
  void note(Code outcome) noexcept;
  [[nodiscard]] Status gather_envelopes(const Status& ready);
  [[nodiscard]] Status make_room(std::span<const std::byte> mine);
  [[nodiscard]] Status gather_bodies();
  // Starts a collective call of the MPI by start(request) and waits for it.
  template <class Start>
  [[nodiscard]] Status perform(const char* doing, Start start);

  std::shared_ptr<const MessageGround> ground_;
  Peers peers_;
  MPI_Comm comm_;
  int rank_ = 0;
  std::unique_ptr<Memory> memory_;
  bool owns_comm_ = false;
  bool lost_ = false;  // an exchange is still under way and will never end
  MpiMessenger messenger_;
  MpiNodeLink link_;
  std::unique_ptr<NodeChannel> near_;
  std::unique_ptr<SharedPointer> shared_pointer_;
  std::size_t turn_ = 0;
};

}  // namespace shima
