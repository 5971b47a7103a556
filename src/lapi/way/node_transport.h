// The tasks of one node: rings in the job's memory; their own memory by pointers within one address
// space, by process_vm_* otherwise.
//
// A thread sleeps until a process of another task ends, and reports that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/process/process_handle.h"
#include "base/unique_fd.h"
#include "ipc/one_space.h"
#include "lapi/way/job_memory.h"
#include "lapi/way/transport.h"

namespace shima::lapi {

struct NodeOptions {
  Reach most = Reach::pointer;  // tests forbid more
  bool same_process = false;    // tests: the tasks are threads of this process
};

class NodeTransport : public Transport {
 public:
  // Shows the task to the others; an error if another process has its place.
  [[nodiscard]] static Result<std::unique_ptr<NodeTransport>> join(const JobMemory& memory,
                                                                   int task,
                                                                   const NodeOptions& options);
  ~NodeTransport() override;
  // Starts to watch the other tasks; calls `on_lost` on the watching thread.
  [[nodiscard]] Status watch(std::function<void(int)> on_lost);
  // Shows that the task has left, and stops to watch.
  void leave();
  // In how many meetings this task has taken part.
  void show_meetings(std::uint64_t count) { memory_.mailbox(task_).meetings = count; }
  // Only shows that the task has left.
  void show_left();
  // Lets the watching thread look at tasks that have appeared since.
  void look_again();
  // Grows whenever a task appears or leaves.
  [[nodiscard]] std::uint32_t changes() const { return memory_.changes().load(); }

  // Whether another task has polled last on the core of the calling thread, which polls. Then each
  // would take the core from the other until the kernel moves one.
  [[nodiscard]] bool shares_core();
  // Moves the calling thread to a core that no task of the node has shown, if there is one.
  void leave_shared_core();
  // Whether a task has appeared in the memory.
  [[nodiscard]] bool is_shown(int task) const {
    return peer(task).mailbox->standing.load(std::memory_order_seq_cst) != 0;
  }
  [[nodiscard]] Bell& bell() { return peer(task_).mailbox->bell; }

  [[nodiscard]] Standing standing(int task) override;
  [[nodiscard]] std::uint64_t meetings(int task) override { return memory_.mailbox(task).meetings; }
  void give_up(int task, std::string_view what) override;
  [[nodiscard]] std::size_t push(int task, std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_room(int task) override { return peer(task).to->has_room(); }
  void notify(int task) override { peer(task).mailbox->bell.ring(); }
  [[nodiscard]] std::size_t pull(int task, std::span<const iovec> pieces) override;
  [[nodiscard]] bool has_data(int task) override {
    return peer(task).from->has_data() && !peer(task).broken;
  }
  [[nodiscard]] Reach reach(int task) override;
  [[nodiscard]] Status copy(int task, Direction direction, std::span<const Piece> here,
                            std::span<const Piece> there) override;
  void wake_waiters(int task) override { peer(task).mailbox->bell.attendants.wake(); }

 private:
  struct Peer {
    Mailbox* mailbox = nullptr;
    ByteRing* to = nullptr;    // this task writes
    ByteRing* from = nullptr;  // this task reads
    std::atomic<bool> lost{false};
    std::atomic<bool> broken{false};  // nothing more is read from it
    std::atomic<int> reach{-1};       // -1: not known yet
    ProcessHandle process;            // used by the watching thread
    bool watched = false;
  };

  NodeTransport(const JobMemory& memory, int task, const NodeOptions& options);
  [[nodiscard]] Peer& peer(int task) { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] const Peer& peer(int task) const { return peers_[static_cast<std::size_t>(task)]; }
  [[nodiscard]] Status appear();
  [[nodiscard]] Reach find_reach(int task);
  void run();
  [[nodiscard]] bool look_at_peers();
  void sleep(bool by_clock);

  JobMemory memory_;
  int task_;
  NodeOptions options_;
  std::function<void(int)> on_lost_;
  std::uint64_t nonce_ = 0;
  std::vector<Peer> peers_;
  std::mutex finding_;
  HeldTasks held_;
  UniqueFd wake_;  // an eventfd
  std::atomic<bool> stopping_{false};
  std::thread watcher_;
};

}  // namespace shima::lapi
