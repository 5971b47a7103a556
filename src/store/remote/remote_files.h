// The files of a target on an I/O node.
#pragma once

#include <memory>
#include <string>

#include "store/remote/place.h"
#include "store/subfile/target_files.h"

namespace shima::remote {

// Asks the node whether it has the target and can use it. `makes_target`: a directory that is not
// yet a target becomes one. `file`: the name of the file that the target is beside, if any.
[[nodiscard]] Result<std::shared_ptr<TargetFiles>> open_remote_files(const Place& place,
                                                                     const std::string& key_file,
                                                                     bool makes_target,
                                                                     const std::string& file = {});

// What a node says about itself, for people.
[[nodiscard]] Result<std::string> ask_status(const Node& node, const std::string& key_file);

}  // namespace shima::remote
