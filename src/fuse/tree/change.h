// Changes of attributes, of all parts of a file where it is striped.
#pragma once

#include <sys/types.h>

#include <array>
#include <ctime>

#include "base/result.h"
#include "fuse/tree/tree.h"

namespace shima::fuse {

using Times = std::array<timespec, 2>;  // as utimensat(2) takes them

[[nodiscard]] Status change_mode(Tree& tree, Node& node, mode_t mode);
// -1: as it is.
[[nodiscard]] Status change_owner(Tree& tree, Node& node, uid_t user, gid_t group);
[[nodiscard]] Status change_size(Node& node, off_t size);
[[nodiscard]] Status change_times(Tree& tree, Node& node, const Times& times);

}  // namespace shima::fuse
