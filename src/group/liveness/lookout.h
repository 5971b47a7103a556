// A node's part of the liveness service: a thread of its leader watches the node's processes and
// the connection to the hub.
//
// The end of a process that has not left is a loss, which the thread writes to a word that the
// members of the node share, and reports to the hub. The hub reports losses of other nodes. If the
// connection ends without the hub's goodbye, rank 0 is lost. The thread calls no MPI and sleeps
// while nothing happens. It stays until all members of the node have left.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/process/process_handle.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "group/liveness/notice.h"

namespace shima {

// The members of a node, the leader first, and the words that they share.
struct WatchedNode {
  struct Member {
    std::uint32_t rank = 0;
    ProcessIdentity process;
    std::atomic<std::uint32_t>* left = nullptr;  // 1: its process takes no further part
  };
  std::vector<Member> members;
  std::size_t own = 0;                         // index of this process
  std::atomic<std::uint32_t>* lost = nullptr;  // rank + 1 of a lost member of any node
  std::shared_ptr<void> memory;                // holds the words
};

class Lookout {
 public:
  // `hub`: the connection to it; without one, only this node is watched.
  [[nodiscard]] static Result<std::shared_ptr<Lookout>> start(WatchedNode node, UniqueFd hub);
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;
  ~Lookout() { end(); }

  // The leader's process takes no further part; its word says so already.
  void leave();
  // Ends the thread.
  void end();
  // Whether all members of the node have left.
  [[nodiscard]] bool is_over() const { return over_; }

 private:
  struct Neighbour {
    const WatchedNode::Member* member = nullptr;
    ProcessHandle process;
  };

  Lookout(WatchedNode node, UniqueFd hub) : node_(std::move(node)), hub_(std::move(hub)) {}
  [[nodiscard]] Status prepare();
  void run();
  [[nodiscard]] int next_look_ms() const;
  void check_neighbours();
  void hear_hub();
  void heed(const Notice& notice);
  void say_goodbye();
  void report(std::uint32_t rank);
  void note(std::uint32_t rank);
  [[nodiscard]] bool has_everyone_left() const;

  WatchedNode node_;
  UniqueFd hub_;
  bool hub_has_left_ = false;
  std::vector<Neighbour> neighbours_;  // the members whose end is a loss
  std::vector<pollfd> watched_;        // the bell, the hub, and the neighbours
  Notice heard_;
  std::size_t heard_bytes_ = 0;
  bool has_said_goodbye_ = false;
  UniqueFd bell_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace shima
