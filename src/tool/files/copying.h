// Shared by cp, mv and restripe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/striped/copy_data.h"
#include "tool/common/failure.h"
#include "tool/common/progress.h"

namespace shima::tool {

// Pairs of source and destination: from "A B", or "A... DIRECTORY".
using Pairs = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Outcome<Pairs> pair_up(const std::vector<std::string>& paths,
                                     const std::string& command);

[[nodiscard]] CopyProgress drawn_by(Progress& progress);

}  // namespace shima::tool
