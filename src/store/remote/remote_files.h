// The files of a target on an I/O node.
#pragma once

#include <memory>
#include <string>

#include "store/remote/place.h"
#include "store/subfile/target_files.h"

namespace shima::remote {

// The node is not asked for the target yet (Step::Kind::attach): it is, at the latest, by the first
// other request.
[[nodiscard]] std::shared_ptr<TargetFiles> remote_files(const Place& place,
                                                        const std::string& key_file);

// What a node says about itself, for people.
[[nodiscard]] Result<std::string> ask_status(const Node& node, const std::string& key_file);

}  // namespace shima::remote
