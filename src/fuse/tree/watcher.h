// Drops the kernel's cached pages of files that were changed outside the mount.
//
// The operating system queues an inotify event for every write to an open file or one of its
// subfiles, before the write returns. A reader's kernel requests the attributes before it reads
// from its pages; the answering thread checks the queue first, and if there is an event, drops the
// pages before it answers. So a read that begins after a write has returned finds the data, however
// coarse the clock is. Mappings request no attributes: pages of files that may be mapped are
// dropped soon after an event.
//
// Dropping a page waits until it is filled, that is, for the answer to another request. Therefore a
// separate thread drops pages, and also sends the answers that depend on it; threads that answer
// requests never wait.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "fuse/tree/node.h"

namespace shima::fuse {

class Watcher {
 public:
  using Drop = std::function<void(NodeNumber)>;  // makes the kernel drop a node's pages

  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  // No file is watched before start().
  [[nodiscard]] Status start(Drop drop);

  // Watches all of these for a node; false if that is impossible, and then none is watched.
  [[nodiscard]] bool watch(const std::shared_ptr<Node>& node, std::span<const int> fds);
  void unwatch(Node& node);

  // Counts the changes reported so far; returns whether the kernel may hold old pages of the node.
  [[nodiscard]] bool is_stale(Node& node);
  // Drops the pages if necessary, then calls `then`, in another thread.
  void renew(std::shared_ptr<Node> node, std::function<void()> then);

 private:
  struct Renewal {
    std::shared_ptr<Node> node;
    std::function<void()> then;
  };

  void take_notes();  // holds the lock
  void count_changes(int watch);
  void run();
  void drop_pages(Node& node);
  void wake() const;

  UniqueFd notes_;
  UniqueFd wake_;
  Drop drop_;
  std::mutex mutex_;
  std::unordered_map<int, std::vector<std::weak_ptr<Node>>> watched_;
  std::deque<Renewal> renewals_;
  std::vector<std::shared_ptr<Node>> changed_;  // nodes that may be mapped
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shima::fuse
