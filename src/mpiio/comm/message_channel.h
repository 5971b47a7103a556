// A channel whose members run on several nodes, over a private communicator.
//
// A meeting is one nonblocking collective call of MPI, whose memory the channel allocates when it
// is created. Short messages travel in that call. Long messages need a second call, after all
// members have allocated memory for them.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>
#include <vector>

#include "group/channel.h"
#include "group/liveness/liveness.h"
#include "group/node_segment.h"
#include "group/pointer/shared_pointer.h"
#include "ipc/staging_pool.h"
#include "mpiio/comm/mpi_messenger.h"

namespace shima {

// The state that the channels of one communicator share.
struct MessageGround {
  std::vector<Member> members;
  bool can_pull = false;
  bool one_space = false;  // whether the ranks of this node share an address space
  std::shared_ptr<StagingPool> staging;
  std::shared_ptr<NodeSegment> segment;  // holds the tasks whose memory one space accesses
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
  [[nodiscard]] const std::vector<Member>& members() const override { return ground_->members; }
  [[nodiscard]] Result<Messages> exchange(
      const Result<std::span<const std::byte>>& mine) noexcept override;
  [[nodiscard]] Outcome agree(const Outcome& mine) noexcept override;
  void begin_transfer() noexcept override { messenger_.begin(); }
  void quit_transfer() noexcept override { messenger_.quit(); }
  [[nodiscard]] bool transfer_quit() noexcept override { return messenger_.somebody_quit(); }
  void wait_for_transfers() noexcept override { messenger_.drain(); }
  [[nodiscard]] StagingPool& staging() override { return *ground_->staging; }
  [[nodiscard]] bool can_pull() const override { return ground_->can_pull; }
  [[nodiscard]] bool one_space() const override { return ground_->one_space; }
  [[nodiscard]] SharedWindows* windows() override { return nullptr; }
  [[nodiscard]] WriteRequests* write_requests() override { return nullptr; }
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
  // All memory that meetings read and write. MPI may still use it after a meeting has failed: then
  // it is kept until the process ends.
  struct Memory {
    explicit Memory(std::size_t members);
    std::array<std::uint64_t, 2> words{};
    std::array<std::uint64_t, 2> all_words{};
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
  [[nodiscard]] Result<Outcome> meet(const Outcome& mine);
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
  bool lost_ = false;  // a meeting is still under way and will never end
  MpiMessenger messenger_;
  std::unique_ptr<SharedPointer> shared_pointer_;
  std::size_t turn_ = 0;
};

}  // namespace shima
