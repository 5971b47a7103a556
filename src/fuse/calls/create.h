// Creates files, and gives them to the user who asked for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "fuse/calls/mount.h"
#include "fuse/tree/handle.h"

namespace shima::fuse {

// The default striping for a new file in its directory (file/hints/directory_default.h); nothing: a
// plain file.
[[nodiscard]] Result<std::optional<std::vector<StripedRegion>>> default_regions(
    const std::string& path);

// Without O_EXCL in `flags`, opens an existing file. Counts one look-up of the node.
[[nodiscard]] Result<std::unique_ptr<Handle>> create_file(Tree& tree, const fuse_ctx& caller,
                                                          const std::shared_ptr<Node>& directory,
                                                          const std::string& name, int flags,
                                                          mode_t mode);

// Gives a new object, open as `made_fd`, to the user who asked for it, not to the mounting user.
[[nodiscard]] Status give_to_caller(const fuse_ctx& caller, int directory_fd, int made_fd);
// The same by name. A user who may rename in the directory can put another file there: anything
// but a new entry of root's, of this type, is refused (EIO).
[[nodiscard]] Status give_to_caller(const fuse_ctx& caller, int directory_fd, const char* name,
                                    mode_t type);

}  // namespace shima::fuse
