// A node: a file, directory or link of the mounted directory that the kernel has a number for.
//
// A node holds an O_PATH descriptor of the object, so it stays what the kernel looked up, whatever
// happens to names, and no path is resolved twice. A striped file is the exception: its master file
// is replaced when the file is truncated. Such a file is identified by its id; its node remembers
// directory and name, and reads again what is there. Anybody can write a master file that names
// another one's id, so the id identifies the file only together with the master file's owner.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "fuse/tree/freshness.h"
#include "layout/layout.h"
#include "layout/master_file.h"
#include "store/target/target.h"

namespace shima::fuse {

using NodeNumber = std::uint64_t;  // the kernel's; the root is 1

// The contents of a master file.
struct Striped {
  MasterFile master;
  Layout layout;
};

class Node;
struct Place {
  std::shared_ptr<Node> directory;
  std::string name;
  // Through the directory's descriptor, which does not depend on the directory's name.
  [[nodiscard]] std::string path() const;
};

// The mutable part of a striped file.
struct StripedParts {
  std::mutex mutex;
  Place place;
  struct stat seen{};  // the master file; the owner changes only by a call through the mount
  std::shared_ptr<const Striped> striped;
  bool removed = false;
  std::vector<UniqueFd> subfiles;  // O_PATH, while the file is open; none if any is on a node
  std::vector<struct stat> known;  // attributes of the subfiles, when they were last examined
};

class Node {
 public:
  enum class Kind { plain, striped, damaged };  // plain: also all that are not regular files

  Node(NodeNumber node_number, Kind node_kind, UniqueFd fd)
      : number(node_number), kind(node_kind), fd_(std::move(fd)) {}

  const NodeNumber number;
  const Kind kind;

  [[nodiscard]] int fd() const { return fd_.get(); }  // -1 for a striped file
  [[nodiscard]] std::string path() const;             // to open any other node by
  [[nodiscard]] StripedParts& parts() { return parts_; }
  [[nodiscard]] Freshness& freshness() { return freshness_; }

  // A plain file whose first bytes have been read and are not a master file's.
  [[nodiscard]] bool known_plain(const struct stat& facts);
  void set_known_plain(const struct stat& facts);

  // For a directory: its directory of subfiles.
  std::mutex beside_mutex;
  std::shared_ptr<const Target> beside;

 private:
  UniqueFd fd_;
  StripedParts parts_;
  Freshness freshness_;
  std::mutex known_mutex_;
  struct stat known_plain_{};
};

[[nodiscard]] bool same_version(const struct stat& a, const struct stat& b);

class NodeTable {
 public:
  explicit NodeTable(UniqueFd root);

  // Null for an unknown number.
  [[nodiscard]] std::shared_ptr<Node> find(NodeNumber number);
  // Look-ups with the same key find the same node.
  // Finds or creates the node with this key, and counts one look-up of the kernel.
  [[nodiscard]] std::shared_ptr<Node> remember(Node::Kind kind, const std::string& key,
                                               UniqueFd fd);
  // Finds it without counting a look-up.
  [[nodiscard]] std::shared_ptr<Node> peek(const std::string& key);
  // From now on look-ups with this key find the node, unless they find another one.
  void change_key(const Node& node, const std::string& key);
  void forget(NodeNumber number, std::uint64_t times);
  [[nodiscard]] std::vector<std::shared_ptr<Node>> all();

 private:
  struct Entry {
    std::shared_ptr<Node> node;
    std::uint64_t look_ups = 0;
    std::string key;
  };
  std::shared_mutex mutex_;
  std::unordered_map<NodeNumber, Entry> by_number_;
  std::unordered_map<std::string, NodeNumber> by_key_;
  NodeNumber next_ = 2;
};

}  // namespace shima::fuse
