// Messages of one channel over a mesh, and how they end when a collective call fails.
//
// A member that fails in the middle of a transfer tells the leader of every other node. After the
// agreement on failure, each member sends a mark to every other one and drops what arrives before
// theirs: messages of a pair keep their order, so nothing of the failed call comes later.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "group/messenger.h"
#include "group/set/mesh.h"
#include "group/topology.h"

namespace shima {

// Sleeps a little longer after each poll that found nothing.
class MeshRest {
 public:
  [[nodiscard]] std::chrono::nanoseconds next();
  void rest();
  void reset() { looks_ = 0; }

 private:
  int looks_ = 0;
};

class MeshMessenger final : public Messenger {
 public:
  // `mesh` and `topology` must outlive it.
  MeshMessenger(Mesh& mesh, std::uint64_t channel, const Topology& topology)
      : mesh_(mesh), channel_(channel), topology_(topology) {}
  MeshMessenger(const MeshMessenger&) = delete;
  MeshMessenger& operator=(const MeshMessenger&) = delete;
  ~MeshMessenger() override { mesh_.forget(channel_); }

  [[nodiscard]] Result<Ticket> send(int to, Lane lane, MessageBuffer message) override;
  [[nodiscard]] Result<Ticket> receive(int from, Lane lane, MessageBuffer buffer) override;
  [[nodiscard]] Result<std::optional<int>> sender(Lane lane) override;
  [[nodiscard]] Result<std::optional<MessageBuffer>> done(Ticket ticket) override;
  [[nodiscard]] std::chrono::nanoseconds pause() override { return rest_.next(); }
  void moved() override { rest_.reset(); }

  void quit() noexcept;
  [[nodiscard]] bool somebody_quit() noexcept;
  // Collective, after an agreement on failure.
  void drain() noexcept;

  // Of other kinds than those of lanes. wait_for() blocks until the next message of that member.
  void tell(int to, Mesh::Kind kind, std::span<const std::byte> bytes);
  [[nodiscard]] Result<MessageBuffer> wait_for(int from, Mesh::Kind kind);

 private:
  using Route = std::pair<Mesh::Kind, int>;  // the other member
  struct Outgoing {
    int to = 0;
    std::uint64_t number = 0;   // of the mesh
    std::uint64_t request = 0;  // among those to that member; 0: none
  };
  struct Incoming {
    MessageBuffer buffer;
    bool has_come = false;
  };

  // Sorts in what has arrived. The caller holds the mutex.
  [[nodiscard]] Status pump();
  void sort_in(Mesh::Message message);
  [[nodiscard]] Status deliver(Incoming& to, Mesh::Message message);

  Mesh& mesh_;
  std::uint64_t channel_;
  const Topology& topology_;
  std::mutex mutex_;  // a thread that writes alone polls, too
  Ticket next_ = 1;
  std::map<Ticket, Outgoing> outgoing_;
  std::map<Ticket, Incoming> incoming_;
  std::map<Route, std::deque<Ticket>> expected_;                     // receives without a message
  std::map<Route, std::deque<Mesh::Message>> unexpected_;            // messages without a receive
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> requests_;  // sent, taken
  bool quit_ = false;
  MeshRest rest_;
};

}  // namespace shima
