// Tells the kernel to drop what it keeps of files that somebody has changed beside the mount.
//
// The operating system queues a note (inotify) for every write to an open file or to one of its
// subfiles, before the write returns to whoever made it. A reader's kernel asks for the attributes
// before it reads from its pages; whoever answers looks into the queue first, and where there is a
// note, has the pages dropped before the answer. So a read that begins after a write has returned
// finds it, however coarse the clock is. Mappings ask nobody: for files that may be mapped, pages
// are dropped soon after a note comes in.
//
// Dropping a page waits until nobody is filling it, that is for an answer to another request. So it
// is done by a thread of its own, which also gives the answers that wait for it; those who answer
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
  using Drop = std::function<void(NodeNumber)>;  // has the kernel drop its pages of a node

  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

  // Before it starts nothing is watched.
  [[nodiscard]] Status start(Drop drop);

  // Watches all of these for a node; false if that is impossible, and then none is watched.
  [[nodiscard]] bool watch(const std::shared_ptr<Node>& node, std::span<const int> fds);
  void unwatch(Node& node);

  // Counts the changes noted so far; whether the kernel may hold old pages of this one.
  [[nodiscard]] bool is_stale(Node& node);
  // Has the pages dropped, if need be, then calls `then`; neither in this thread nor at once.
  void renew(std::shared_ptr<Node> node, std::function<void()> then);

 private:
  struct Job {
    std::shared_ptr<Node> node;
    std::function<void()> then;
  };

  void take_notes();  // with the lock
  void count_changes(int watch);
  void run();
  void drop_pages(Node& node);
  void wake() const;

  UniqueFd notes_;
  UniqueFd wake_;
  Drop drop_;
  std::mutex mutex_;
  std::unordered_map<int, std::vector<std::weak_ptr<Node>>> watched_;
  std::deque<Job> jobs_;
  std::vector<std::shared_ptr<Node>> changed_;  // that may be mapped
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace shima::fuse
