// Collective calls on subfiles of this node, which the node directs itself.
//
// The subgroup masters that take part join a call, each over a connection of its own on which the
// subfile is open. The last one to join makes the call begin: its thread runs the agent
// (collective/agent_server.h) for all, and the threads of the others sleep. Before that it takes
// the agent's memory out of the allowance of its key, and waits while other calls have it. Each
// window waits for its turn among the requests of all clients before it is written or read. If one
// that takes part leaves before the end, or breaks the rules, the call fails for all. Afterwards
// each connection tells its client how the call has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "collective/io_node/io_node_end.h"
#include "collective/io_node/stream_messenger.h"
#include "iod/allowance.h"
#include "iod/fair_queue.h"
#include "store/striped/logical_file.h"

namespace shima::iod {

// The connection of one that joins, whose it is, and what has been received of its messages
// already.
struct Arrival {
  int socket = -1;
  const FairQueue::Process& process;
  std::shared_ptr<Allowance> memory;  // of the key, for calls
  std::vector<std::byte> ahead;
};

class CallTable {
 public:
  // `queue`: of those that use the disks. `patience`: for one that takes part and does not do what
  // is due.
  CallTable(FairQueue& queue, std::chrono::milliseconds patience)
      : queue_(queue), patience_(patience) {}

  struct Seat {
    Arrival from;
    FileIdentity identity;  // of the file
    LogicalFile& file;
    bool direct = false;  // it is open for direct I/O
    // Told of the bytes of each window that this thread's agent has moved, perhaps by another
    // thread.
    std::function<void(std::uint64_t)> moved = [](std::uint64_t) {};
  };
  // Takes part in a call from its beginning to its end; returns what has been moved, if this thread
  // has run the agent. After an error, which the client was told, the connection cannot be used.
  [[nodiscard]] Result<CallEnd> take_part(const DirectedCall& call, const Seat& seat);
  // Calls that cannot begin or go on from now on fail because the node ends.
  void stop() { is_stopping_ = true; }

 private:
  // One that takes part.
  struct Joined {
    explicit Joined(const Seat& its_seat)
        : seat(its_seat), stream(its_seat.from.socket, its_seat.from.ahead) {}
    const Seat& seat;
    MessageStream stream;
  };
  struct Call {
    DirectedCall what;
    std::vector<Joined*> joined;
    bool is_running = false;
    UniqueFd ended;  // readable once the call has ended; then the rest is the outcome
    Status status;
    CallEnd moved;
    // Of the agent. Copies of messages may remain until all have been told of the end.
    std::unique_ptr<Allowed> memory;
  };
  class UnsentMessages;
  struct Key {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t id = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // The last calls that will never begin: a process may join after another has left. A list for
  // each user, so that the calls of one do not displace those of others.
  class GivenUp {
   public:
    void add(const std::string& user, const Key& key);
    [[nodiscard]] bool has(const Key& key) const { return all_.contains(key); }

   private:
    std::map<std::string, std::deque<Key>> of_user_;
    std::set<Key> all_;
  };

  struct Outcome {
    Status status;
    CallEnd moved;  // by this thread's agent
  };
  // Afterwards nothing of the call is held.
  [[nodiscard]] Result<Outcome> take_part_until_told(const DirectedCall& call, const Seat& seat);

  // A call that was joined.
  struct Place {
    std::shared_ptr<Call> call;
    bool is_last = false;  // the call begins
  };
  [[nodiscard]] Result<Place> join(const Key& key, const DirectedCall& call, Joined& joined);
  void await_end(const Key& key, Call& call, const Joined& mine);
  void give_up(const Key& key, Call& call, const std::string& user);
  void end(const Key& key, Call& call, Status status);
  [[nodiscard]] Status lead(Call& call, const Joined& mine);
  [[nodiscard]] Status run_agent(Call& call, const Joined& mine);
  [[nodiscard]] Status cause_of(const Call& call, Status status) const;
  [[nodiscard]] Status tell_end(Joined& mine, const CallEnd& moved, const Status& status) const;
  [[nodiscard]] std::unexpected<Error> gave_up() const;

  FairQueue& queue_;
  std::chrono::milliseconds patience_;
  std::atomic<bool> is_stopping_ = false;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Call>> calls_;  // that have not ended
  GivenUp given_up_;
};

}  // namespace shima::iod
