// Messages of one channel over MPI, and how they end when a collective call fails.
//
// A member that fails in the middle of a transfer sends an empty message to the leader of every
// other node. Leaders see it when they have nothing else to do, and all members leave the transfer.
// After the agreement on failure, each member cancels its receives and tells those to which it has
// sent messages how many; all members know when all have been told (nonblocking consensus: Hoefler,
// Siebert, Lumsdaine, "Scalable communication protocols for dynamic sparse data exchange", 2010).
// Then each receives and drops what is still on its way, and waits until its own messages have
// left. No request is under way then, and the next call starts from a clean state. Ending a call
// needs no memory but that of the members with which this one has exchanged messages.
#pragma once

#include <mpi.h>

#include <array>
#include <map>
#include <memory>

#include "group/messenger.h"
#include "group/topology.h"
#include "mpiio/mpi/await.h"

namespace shima {

class MpiMessenger final : public Messenger {
 public:
  // `topology` and `peers` must outlive the messenger.
  MpiMessenger(MPI_Comm comm, const Topology& topology, const Peers& peers);
  MpiMessenger(const MpiMessenger&) = delete;
  MpiMessenger& operator=(const MpiMessenger&) = delete;
  // Keeps the requests that will never end: the MPI may write to them as long as the process lives.
  ~MpiMessenger() override;

  [[nodiscard]] Result<Ticket> send(int to, Lane lane, MessageBuffer message) override;
  [[nodiscard]] Result<Ticket> receive(int from, Lane lane, MessageBuffer buffer) override;
  [[nodiscard]] Result<std::optional<int>> sender(Lane lane) override;
  [[nodiscard]] Result<std::optional<MessageBuffer>> done(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds pause() override { return pause_.next(); }
  void moved() override { pause_.reset(); }

  // A transfer begins, with nothing under way.
  void begin() noexcept;
  void quit() noexcept;
  [[nodiscard]] bool somebody_quit() noexcept;
  // Collective, after an agreement on failure.
  void drain() noexcept;
  // The MPI has failed, or a rank was lost: nothing more is sent or received.
  void give_up() noexcept { gave_up_ = true; }

 private:
  struct Message {
    MessageBuffer buffer;
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = 0;
    int tag = 0;
    bool incoming = false;
  };
  // Numbers of messages by tag: one for each lane, and one for quitting.
  static constexpr int quit_tag = lane_count;
  static constexpr int counts_tag = lane_count + 2;  // MpiNodeLink uses the one between
  using Tally = std::array<int, lane_count + 1>;
  // A member with which this one exchanges messages, and their numbers in this transfer.
  struct Peer {
    Tally sent{};
    Tally received{};
    Tally expected{};  // known after tell_counts()
    MPI_Request quit = MPI_REQUEST_NULL;
    MPI_Request counts = MPI_REQUEST_NULL;
  };
  struct State {
    std::map<Ticket, Message> under_way;
    std::map<int, Peer> peers;  // by rank; the node leaders from the beginning
    Tally arriving{};
  };

  [[nodiscard]] int& count_of(const Message& message);
  [[nodiscard]] Status tell_counts();
  [[nodiscard]] Status send_counts();
  [[nodiscard]] Result<bool> counts_received();
  [[nodiscard]] Status hear_counts();
  void take_back();
  [[nodiscard]] Result<bool> finish_some();
  [[nodiscard]] Result<bool> drop_some();
  [[nodiscard]] Status drop_all(int from, const Tally& counts);
  [[nodiscard]] Result<Ticket> start(Message message);
  [[nodiscard]] int begin(Message& message);
  [[nodiscard]] Result<bool> drop_one(int from, int tag);
  [[nodiscard]] Status drop(int from, int tag);

  MPI_Comm comm_;
  const Topology& topology_;
  const Peers& peers_;
  int rank_ = 0;
  Ticket next_ = 1;
  std::unique_ptr<State> state_;
  bool gave_up_ = false;
  Rest pause_;
  PeerWatch watch_;
};

}  // namespace shima
