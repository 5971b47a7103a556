#include "fuse/tree/node.h"

#include <fmt/format.h>

namespace shima::fuse {

std::string Node::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

std::string Place::path() const {
  return fmt::format("/proc/self/fd/{}/{}", directory->fd(), name);
}

bool same_version(const struct stat& a, const struct stat& b) {
  const auto same = [](const timespec& x, const timespec& y) {
    return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec;
  };
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         same(a.st_mtim, b.st_mtim) && same(a.st_ctim, b.st_ctim);
}

bool Node::known_plain(const struct stat& facts) {
  const std::lock_guard lock(known_mutex_);
  return same_version(known_plain_, facts);
}
void Node::set_known_plain(const struct stat& facts) {
  const std::lock_guard lock(known_mutex_);
  known_plain_ = facts;
}

NodeTable::NodeTable(UniqueFd root) {
  by_number_[1] = {std::make_shared<Node>(1, Node::Kind::plain, std::move(root)), 1, "root"};
}

std::shared_ptr<Node> NodeTable::find(NodeNumber number) {
  const std::shared_lock lock(mutex_);
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second.node;
}

std::shared_ptr<Node> NodeTable::peek(const std::string& key) {
  const std::shared_lock lock(mutex_);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : by_number_.at(found->second).node;
}

std::shared_ptr<Node> NodeTable::remember(Node::Kind kind, const std::string& key, UniqueFd fd) {
  const std::lock_guard lock(mutex_);
  auto [place, is_new] = by_key_.try_emplace(key, next_);
  if (is_new)
    by_number_[next_] = {std::make_shared<Node>(next_, kind, std::move(fd)), 0, key}, ++next_;
  Entry& entry = by_number_.at(place->second);
  ++entry.look_ups;
  return entry.node;
}

void NodeTable::change_key(const Node& node, const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(node.number);
  if (found == by_number_.end() || !by_key_.try_emplace(key, node.number).second) return;
  by_key_.erase(found->second.key);
  found->second.key = key;
}

void NodeTable::forget(NodeNumber number, std::uint64_t times) {
  std::shared_ptr<Node> last;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = by_number_.find(number);
  if (number == 1 || found == by_number_.end()) return;
  Entry& entry = found->second;
  entry.look_ups -= std::min(times, entry.look_ups);
  if (entry.look_ups > 0) return;
  last = std::move(entry.node);
  by_key_.erase(entry.key);
  by_number_.erase(found);
}

std::vector<std::shared_ptr<Node>> NodeTable::all() {
  const std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Node>> nodes;
  for (const auto& [number, entry] : by_number_) nodes.push_back(entry.node);
  return nodes;
}

}  // namespace shima::fuse
