// Files by path on this machine.
#pragma once

#include "store/subfile/file_tree.h"

namespace shima {

[[nodiscard]] FileTree& local_tree();

}  // namespace shima
