// Mounts a directory of an I/O node (iod://HOST:PORT/NAME/...).
//
// Unlike a directory of this machine, it has no descriptors: files are found by their paths, and
// libfuse keeps paths for the kernel's numbers and hides an open file that is removed under another
// name. Attributes and names are not cached; pages are dropped when times or sizes have changed.
#pragma once

#include "base/result.h"
#include "fuse/calls/mount.h"

namespace shima::fuse {

// As run_mount.
[[nodiscard]] Status run_far_mount(const MountOptions& options);

}  // namespace shima::fuse
