// An open file of the mount.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"
#include "fuse/tree/tree.h"
#include "store/striped/logical_file.h"

namespace shima::fuse {

class Handle {
 public:
  // `flags`: of open(2), without those that create or truncate. `created`: the file, if it was just
  // created and is open.
  [[nodiscard]] static Result<std::unique_ptr<Handle>> open(Tree& tree, std::shared_ptr<Node> node,
                                                            int flags, UniqueFd created = {});
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();

  [[nodiscard]] const std::shared_ptr<Node>& node() const { return node_; }
  // The descriptor of a plain file; otherwise -1.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Whether the kernel caches no pages of it.
  [[nodiscard]] bool past_cache() const;

  // Returns fewer bytes only at the end of the file.
  [[nodiscard]] Result<std::uint64_t> read(void* data, std::uint64_t len_bytes, FileOffset offset);
  // Appends if the descriptor was opened for that; `is_page`: the kernel writes back a page of a
  // mapping.
  [[nodiscard]] Status write(const void* data, std::uint64_t len_bytes, FileOffset offset,
                             bool is_page);
  [[nodiscard]] Status sync(bool data_only);
  [[nodiscard]] Status truncate(FileOffset size);
  [[nodiscard]] Status allocate(int mode, off_t offset, off_t len);
  [[nodiscard]] Result<off_t> seek(off_t offset, int whence);
  // At each close of a descriptor: returns deferred errors.
  [[nodiscard]] Status flush();

 private:
  Handle(Tree& tree, std::shared_ptr<Node> node, int flags)
      : tree_(tree), node_(std::move(node)), flags_(flags) {}
  [[nodiscard]] bool reads() const { return (flags_ & O_ACCMODE) != O_WRONLY; }
  [[nodiscard]] Status open_plain(UniqueFd created);
  [[nodiscard]] Status open_striped();
  [[nodiscard]] Status begin_watching();

  Tree& tree_;
  std::shared_ptr<Node> node_;
  int flags_;
  UniqueFd fd_;
  std::optional<LogicalFile> file_;
  std::mutex syncing_;
  bool counted_ = false;
};

}  // namespace shima::fuse
