// What cp, mv and restripe have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/striped/copy_data.h"
#include "tool/common/failure.h"
#include "tool/common/progress.h"

namespace shima::tool {

// Sources and the names that they go to: "A B", or "A... FOLDER".
using Pairs = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Outcome<Pairs> pair_up(const std::vector<std::string>& paths,
                                     const std::string& command);

[[nodiscard]] CopyProgress drawn_by(Progress& progress);

}  // namespace shima::tool
