// The mounted directory: maps its names to nodes.
//
// The directory is opened once, and all objects are reached from descriptors, one name at a time,
// so that no link and no rename leads out of it. Shima's own names (directories of subfiles,
// drafts) are hidden.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/tree/node.h"
#include "fuse/tree/watcher.h"
#include "store/striped/logical_file.h"

namespace shima::fuse {

class Tree {
 public:
  // `others`: users other than the mounting one have access.
  Tree(UniqueFd root, bool others) : nodes_(std::move(root)), others_(others) {}

  [[nodiscard]] NodeTable& nodes() { return nodes_; }
  [[nodiscard]] Watcher& watcher() { return watcher_; }

  // Looks up a name in a directory; counts one look-up of the kernel.
  [[nodiscard]] Result<std::shared_ptr<Node>> look_up(const std::shared_ptr<Node>& directory,
                                                      const std::string& name);

  // A striped file appears as one regular file.
  [[nodiscard]] Result<struct stat> attributes(Node& node);
  // Reads the master file and updates the node.
  [[nodiscard]] Result<std::shared_ptr<const Striped>> description(Node& node);

  // The targets of a node's subfiles, in the layout's order.
  [[nodiscard]] Result<std::vector<std::shared_ptr<const Target>>> targets_of(Node& node);
  // O_PATH descriptors of its subfiles, or none if any of them is on an I/O node; EACCES if a
  // subfile's owner is not the file's and other users have access.
  [[nodiscard]] Result<std::vector<UniqueFd>> open_subfiles(Node& node);

  // EACCES if a subfile that was opened for a node belongs to another user than the node's file
  // does and other users have access.
  [[nodiscard]] Status check_owner(Node& node, const LogicalFile& opened);
  // The file of a node has a new owner; -1: unchanged.
  void set_owner(Node& node, uid_t user, gid_t group);

  // Whether the file changed since the last call, on file systems that do not report all changes.
  [[nodiscard]] static bool changed_unnoticed(Node& node, const struct stat& facts);

 private:
  [[nodiscard]] Result<std::shared_ptr<Node>> take_regular(const std::shared_ptr<Node>& directory,
                                                           const std::string& name, UniqueFd fd,
                                                           const struct stat& facts);
  [[nodiscard]] Result<std::shared_ptr<Node>> take_striped(const std::shared_ptr<Node>& directory,
                                                           const std::string& name);
  [[nodiscard]] Result<struct stat> striped_attributes(Node& node);
  [[nodiscard]] Status examine(StripedParts& parts);  // holds the lock
  [[nodiscard]] Result<std::vector<struct stat>> subfile_facts(Node& node);
  [[nodiscard]] Result<std::shared_ptr<const Target>> target(const std::string& name,
                                                             const Place& place);

  NodeTable nodes_;
  Watcher watcher_;
  bool others_;
  std::mutex targets_mutex_;
  std::map<std::string, std::shared_ptr<const Target>> targets_;
};

// The attributes of a striped file, from those of its master file and its subfiles.
[[nodiscard]] struct stat striped_facts(const Striped& striped, const struct stat& master,
                                        std::span<const struct stat> subfiles);

// Whether a name is reserved for Shima.
[[nodiscard]] bool is_hidden(std::string_view name);

}  // namespace shima::fuse
