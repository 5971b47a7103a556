// The files of a target that is a directory of this machine.
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "store/subfile/target_files.h"

namespace shima {

// `directory`: its path.
[[nodiscard]] std::shared_ptr<TargetFiles> local_files(UniqueFd fd, std::string directory);

}  // namespace shima
