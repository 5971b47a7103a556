// Steps on the files of a target of an I/O node, by few messages.
//
// The requests for all steps travel together over one connection, and so do the replies. A step
// that changes something is linked to the next one, so that the node ends the chain at a failure.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/remote/connection.h"
#include "store/subfile/target_files.h"

namespace shima::remote {

// `target`: its name at the node.
[[nodiscard]] std::unique_ptr<FarAnswer<std::vector<TargetFiles::StepResult>>> begin_steps(
    Result<std::unique_ptr<Connection>> connection, const std::string& target,
    std::span<const TargetFiles::Step> steps);

}  // namespace shima::remote
