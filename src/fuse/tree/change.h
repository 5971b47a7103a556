// Changes of attributes, applied to all parts of a striped file.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "fuse/tree/tree.h"

namespace shima::fuse {

[[nodiscard]] Status change_mode(Tree& tree, Node& node, mode_t mode);
// -1: unchanged.
[[nodiscard]] Status change_owner(Tree& tree, Node& node, uid_t user, gid_t group);
[[nodiscard]] Status change_size(Node& node, off_t size);
[[nodiscard]] Status change_times(Node& node, const FileTimes& times);

}  // namespace shima::fuse
