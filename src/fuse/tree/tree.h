// The folder that is shown, and what its names and nodes stand for.
//
// The folder is opened once, and everything is reached from descriptors, one name at a time, so
// that no link and no renaming leads out of it. What belongs to Shima (folders of subfiles, drafts)
// is not there for those who use the mount.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fuse/tree/node.h"
#include "fuse/tree/watcher.h"

namespace shima::fuse {

class Tree {
 public:
  // `others`: users other than the one who mounts may come.
  Tree(UniqueFd root, bool others) : nodes_(std::move(root)), others_(others) {}

  [[nodiscard]] NodeTable& nodes() { return nodes_; }
  [[nodiscard]] Watcher& watcher() { return watcher_; }

  // What has a name in a folder; the kernel will forget it once more.
  [[nodiscard]] Result<std::shared_ptr<Node>> look_up(const std::shared_ptr<Node>& folder,
                                                      const std::string& name);

  // As one ordinary file where it is striped.
  [[nodiscard]] Result<struct stat> attributes(Node& node);
  // What the master file says; brings the node up to date with what stands at its name.
  [[nodiscard]] Result<std::shared_ptr<const Striped>> description(Node& node);

  // The targets of a node's subfiles, in the layout's order.
  [[nodiscard]] Result<std::vector<std::shared_ptr<const Target>>> targets_of(Node& node);
  // O_PATH descriptors of its subfiles; EACCES where they belong to somebody else than the file
  // does and not only the one who mounts may come.
  [[nodiscard]] Result<std::vector<UniqueFd>> open_subfiles(Node& node);

  // Whether others have written since the last call, on file systems where that is not noted.
  [[nodiscard]] static bool changed_unnoticed(Node& node, const struct stat& facts);

 private:
  [[nodiscard]] Result<std::shared_ptr<Node>> take_regular(const std::shared_ptr<Node>& folder,
                                                           const std::string& name, UniqueFd fd,
                                                           const struct stat& facts);
  [[nodiscard]] Result<std::shared_ptr<Node>> take_striped(const std::shared_ptr<Node>& folder,
                                                           const std::string& name);
  [[nodiscard]] Result<struct stat> striped_attributes(Node& node);
  [[nodiscard]] Status examine(StripedParts& parts);  // with the lock
  [[nodiscard]] Result<std::vector<struct stat>> subfile_facts(Node& node);
  [[nodiscard]] Result<std::shared_ptr<const Target>> target(const std::string& name,
                                                             const Place& place);

  NodeTable nodes_;
  Watcher watcher_;
  bool others_;
  std::mutex targets_mutex_;
  std::map<std::string, std::shared_ptr<const Target>> targets_;
};

// Names that are Shima's own.
[[nodiscard]] bool is_hidden(std::string_view name);

}  // namespace shima::fuse
