// A mounted directory, and how requests of the kernel are answered.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "fuse/tree/errors.h"
#include "fuse/tree/tree.h"

namespace shima::fuse {

struct MountOptions {
  std::string directory;
  std::string mount_point;  // absolute
  bool foreground = false;
  bool others = false;   // users other than the mounting one have access
  std::string log_file;  // for the background process; empty: none
};

// Mounts the directory, by default in the background: then the caller's process exits when the
// mount is ready. Returns when it is unmounted.
[[nodiscard]] Status run_mount(const MountOptions& options);

// The parts of it that mounts of all kinds share: the options for libfuse; the process that stays;
// and calling the loop of libfuse, until it returns.
[[nodiscard]] std::string mount_words(const MountOptions& options);
[[nodiscard]] Status go_to_background(const MountOptions& options);
[[nodiscard]] Status serve(const std::function<int(fuse_loop_config*)>& loop);

struct Mount {
  explicit Mount(UniqueFd root, const MountOptions& given)
      : options(given), tree(std::move(root), given.others) {}
  MountOptions options;
  Tree tree;
  std::once_flag tuned;
};

// The calls of the kernel, by topic.
void add_attribute_calls(fuse_lowlevel_ops& calls);
void add_name_calls(fuse_lowlevel_ops& calls);
void add_data_calls(fuse_lowlevel_ops& calls);
void add_directory_calls(fuse_lowlevel_ops& calls);
void add_xattr_calls(fuse_lowlevel_ops& calls);

inline Mount& mount_of(fuse_req_t request) {
  return *static_cast<Mount*>(fuse_req_userdata(request));
}
inline Tree& tree_of(fuse_req_t request) { return mount_of(request).tree; }

[[nodiscard]] inline Result<std::shared_ptr<Node>> node_of(fuse_req_t request, fuse_ino_t number) {
  auto node = tree_of(request).nodes().find(number);
  if (!node) return refusal(ESTALE);
  return node;
}

// Calls `body`, which replies unless it fails; then its error is the reply. Errors with a message
// indicate a problem of the mount, not of the request, and are logged.
template <class Body>
void answer(fuse_req_t request, Body body) {
  const Status status = caught(body);
  if (status) return;
  if (!status.error().what.empty()) log(LogLevel::warn, "{}", describe(status.error()));
  fuse_reply_err(request, errno_of(status.error()));
}

// The same for calls that return no data.
template <class Body>
void answer_done(fuse_req_t request, Body body) {
  answer(request, [&]() -> Status {
    SHIMA_TRY(body());
    fuse_reply_err(request, 0);
    return {};
  });
}

// Replies with a node that was looked up.
[[nodiscard]] Status reply_node(fuse_req_t request, const std::shared_ptr<Node>& node);
// The kernel's view of a node. It must not cache any of it.
[[nodiscard]] Result<fuse_entry_param> entry_of(Tree& tree, const std::shared_ptr<Node>& node);

}  // namespace shima::fuse
