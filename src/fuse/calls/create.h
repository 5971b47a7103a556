// New files, and what folders hold.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "fuse/calls/mount.h"
#include "fuse/tree/handle.h"

namespace shima::fuse {

// Opens what is there where `flags` lack O_EXCL. The node counts as looked up once more.
[[nodiscard]] Result<std::unique_ptr<Handle>> create_file(Tree& tree, const fuse_ctx& caller,
                                                          const std::shared_ptr<Node>& folder,
                                                          const std::string& name, int flags,
                                                          mode_t mode);

// What was just made belongs to whoever asked for it, not to the one who mounted.
[[nodiscard]] Status give_to_caller(const fuse_ctx& caller, int folder_fd, const char* name);

// All but "." and "..".
[[nodiscard]] Result<std::vector<std::string>> names_in(int folder_fd);

}  // namespace shima::fuse
