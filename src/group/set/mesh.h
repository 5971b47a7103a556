// TCP connections between all members of a set of processes on several nodes, and the messages on
// them.
//
// Every pair of members has a connection; a message says which channel and lane it is of. A member
// reads and writes when it polls, which every wait of a collective call does, so that there is no
// thread. Messages that arrive for a channel wait there until it takes them. A connection that ends
// without a farewell is a lost member: from then on all that waits fails. A member that leaves says
// so first.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "group/messenger.h"

namespace shima {

class Mesh {
 public:
  // Of a message: those of Messenger first.
  enum class Kind : std::uint16_t {
    lanes_end = lane_count,
    request_taken = lane_count,  // the receive of a request has begun
    quit,
    mark,     // nothing of the failed transfer follows
    meeting,  // of node leaders
    sum,
    farewell,
  };
  [[nodiscard]] static constexpr Kind kind_of(Lane lane) {
    return static_cast<Kind>(static_cast<std::uint16_t>(lane));
  }

  struct Message {
    int from = 0;
    Kind kind = Kind::farewell;
    MessageBuffer bytes;
  };

  // `sockets`: by member; none for this one.
  Mesh(std::vector<UniqueFd> sockets, int own);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();

  [[nodiscard]] int own() const { return own_; }
  [[nodiscard]] int size() const { return static_cast<int>(peers_.size()); }

  // Returns the number of the message among those to this member. `Keeps`: for take_back().
  enum class Keeps : std::uint8_t { no, yes };
  std::uint64_t send(int to, std::uint64_t channel, Kind kind, MessageBuffer bytes,
                     Keeps keeps = Keeps::no);
  // The memory of a message, once the kernel has taken all of it.
  [[nodiscard]] std::optional<MessageBuffer> take_back(int to, std::uint64_t number);
  // The next message for a channel.
  [[nodiscard]] std::optional<Message> take(std::uint64_t channel);
  // Drops what has arrived for a channel that has ended.
  void forget(std::uint64_t channel);

  // Moves what can be moved without waiting; noexcept, because a failure is a lost member.
  void poll() noexcept;
  // peer_lost once a member was lost.
  [[nodiscard]] Status check() const;
  // Whether a member has left, and all that it sent has been taken from its connection.
  [[nodiscard]] bool is_gone(int member);

 private:
  struct Head {
    std::uint64_t len_bytes = 0;
    std::uint64_t channel = 0;
    std::uint16_t kind = 0;
    std::array<std::uint16_t, 3> unused{};
  };
  struct Outgoing {
    Head head;
    MessageBuffer bytes;
    std::size_t done_bytes = 0;  // of both
    std::uint64_t kept = 0;      // number of the message, if its memory is kept
  };
  struct Peer {
    UniqueFd socket;
    std::deque<Outgoing> outgoing;
    std::uint64_t sent = 0;                         // messages
    std::map<std::uint64_t, MessageBuffer> kept{};  // by number, for take_back()
    Head head{};
    std::size_t head_bytes = 0;
    MessageBuffer incoming;
    std::size_t incoming_bytes = 0;
    bool has_left = false;
  };

  void write_some(Peer& peer);
  void read_some(Peer& peer, int from);
  // False if nothing more can be read now.
  [[nodiscard]] bool read_part(Peer& peer, void* data, std::size_t len_bytes, std::size_t& done);
  void arrived(Peer& peer, int from);
  void lose(int member);

  int own_;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;
  std::map<std::uint64_t, std::deque<Message>> inbox_;  // by channel
  std::atomic<int> lost_{-1};
};

}  // namespace shima
