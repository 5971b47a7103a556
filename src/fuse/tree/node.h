// What the kernel has a number for: a file, a folder, a link of the folder that is shown.
//
// A node holds a descriptor that names the thing and nothing more (O_PATH), so that whatever
// happens to names, it stays what the kernel once looked up, and no path is walked twice. A striped
// file is the exception: its master file is replaced when the file is truncated, so such a file is
// known by its id, and its node remembers folder and name, where what stands there now is looked at
// again.
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
#include "store/striped/target.h"

namespace shima::fuse {

using NodeNumber = std::uint64_t;  // the kernel's; the root is 1

// What a master file says.
struct Striped {
  MasterFile master;
  Layout layout;
};

class Node;
struct Place {
  std::shared_ptr<Node> folder;
  std::string name;
  // Through the folder's descriptor, whatever the folder is called by now.
  [[nodiscard]] std::string path() const;
};

// A striped file's changing parts.
struct StripedParts {
  std::mutex mutex;
  Place place;
  struct stat seen{};  // the master file
  std::shared_ptr<const Striped> striped;
  bool removed = false;
  std::vector<UniqueFd> subfiles;  // O_PATH, while the file is open
};

class Node {
 public:
  enum class Kind { plain, striped, damaged };  // plain: whatever is no regular file, too

  Node(NodeNumber node_number, Kind node_kind, std::string node_key, UniqueFd fd)
      : number(node_number), kind(node_kind), key(std::move(node_key)), fd_(std::move(fd)) {}

  const NodeNumber number;
  const Kind kind;
  const std::string key;  // what makes two look-ups the same node

  [[nodiscard]] int fd() const { return fd_.get(); }  // of a striped file: none
  [[nodiscard]] std::string path() const;             // to open by, of any other
  [[nodiscard]] StripedParts& parts() { return parts_; }
  [[nodiscard]] Freshness& freshness() { return freshness_; }

  // A plain file whose head has been looked at and is no master file's.
  [[nodiscard]] bool known_plain(const struct stat& facts);
  void set_known_plain(const struct stat& facts);

  // Of a folder: its folder of subfiles.
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

  // Null for a number that the kernel cannot have.
  [[nodiscard]] std::shared_ptr<Node> find(NodeNumber number);
  // The node with this key, made if there is none, which the kernel will forget once more.
  [[nodiscard]] std::shared_ptr<Node> remember(Node::Kind kind, const std::string& key,
                                               UniqueFd fd);
  // Without being forgotten once more.
  [[nodiscard]] std::shared_ptr<Node> peek(const std::string& key);
  void forget(NodeNumber number, std::uint64_t times);
  [[nodiscard]] std::vector<std::shared_ptr<Node>> all();

 private:
  struct Entry {
    std::shared_ptr<Node> node;
    std::uint64_t look_ups = 0;
  };
  std::shared_mutex mutex_;
  std::unordered_map<NodeNumber, Entry> by_number_;
  std::unordered_map<std::string, NodeNumber> by_key_;
  NodeNumber next_ = 2;
};

}  // namespace shima::fuse
