// A channel whose members run on several nodes, over a private communicator of its own.
#pragma once

#include <mpi.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "group/channel.h"
#include "group/messenger.h"
#include "group/pointer/shared_pointer.h"
#include "ipc/staging_pool.h"
#include "mpiio/comm/await.h"

namespace shima {

class MpiMessenger final : public Messenger {
 public:
  explicit MpiMessenger(MPI_Comm comm) : comm_(comm) {}

  [[nodiscard]] Result<Ticket> send(int to, std::span<const std::byte> data) override;
  [[nodiscard]] Result<Ticket> receive(int from, std::span<std::byte> data) override;
  [[nodiscard]] Result<bool> done(Ticket ticket, std::uint64_t& len_bytes) override;
  void rest() override { pause_.rest(); }
  void moved() override { pause_.reset(); }

 private:
  MPI_Comm comm_;
  Ticket next_ = 1;
  std::map<Ticket, MPI_Request> under_way_;
  Rest pause_;
};

// What channels of one communicator have in common.
struct MessageGround {
  std::vector<Member> members;
  bool can_pull = false;
  bool one_space = false;  // the ranks of this node
  std::shared_ptr<StagingPool> staging;
  // Of the shared file pointers: the one at rank 0, the other at the other ranks; neither where
  // rank 0 cannot be reached.
  std::shared_ptr<PointerService> pointer_service;
  std::shared_ptr<PointerClient> pointer_client;
};

class MessageChannel final : public Channel {
 public:
  // Duplicates `comm`; `key` is the file's own. Collective over it.
  [[nodiscard]] static Result<std::unique_ptr<MessageChannel>> make(
      std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key);
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;
  ~MessageChannel() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] const std::vector<Member>& members() const override { return ground_->members; }
  [[nodiscard]] Result<std::vector<std::span<const std::byte>>> exchange(
      std::span<const std::byte> mine) override;
  [[nodiscard]] Outcome agree(const Outcome& mine) override;
  [[nodiscard]] StagingPool& staging() override { return *ground_->staging; }
  [[nodiscard]] bool can_pull() const override { return ground_->can_pull; }
  [[nodiscard]] bool one_space() const override { return ground_->one_space; }
  [[nodiscard]] SharedWindows* windows() override { return nullptr; }
  [[nodiscard]] Errands* errands() override { return nullptr; }
  [[nodiscard]] SharedPointer* shared_pointer() override { return shared_pointer_.get(); }
  [[nodiscard]] Messenger* messenger() override { return &messenger_; }

 private:
  MessageChannel(std::shared_ptr<const MessageGround> ground, MPI_Comm comm, std::uint64_t key);

  std::shared_ptr<const MessageGround> ground_;
  MPI_Comm comm_;
  int rank_ = 0;
  MpiMessenger messenger_;
  std::unique_ptr<SharedPointer> shared_pointer_;
  std::array<std::vector<std::byte>, 2> letters_;  // of this exchange and of the one before
  std::size_t turn_ = 0;
};

}  // namespace shima
