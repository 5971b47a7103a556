// Takes steps on the files of several targets: on other machines at once, here in turn.
#pragma once

#include <span>
#include <vector>

#include "store/subfile/target_files.h"

namespace shima {

struct StepOn {
  TargetFiles* files = nullptr;
  TargetFiles::Step step;
};

// The steps on each target are taken in their order, until one that changes something has failed.
// Those on one target all look or all change something. The results are in the order of the steps.
[[nodiscard]] std::vector<TargetFiles::StepResult> take_steps(std::span<const StepOn> steps);
// The same for one target.
[[nodiscard]] std::vector<TargetFiles::StepResult> take_steps(
    TargetFiles& files, std::span<const TargetFiles::Step> steps);

// Removes a file; one that does not exist is no error.
[[nodiscard]] Status remove_if_there(TargetFiles& files, const std::string& name);

}  // namespace shima
