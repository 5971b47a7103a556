// `shima info`: what this installation of Shima is, and what it finds on this machine.
#pragma once

#include "tool/common/failure.h"

namespace shima::tool {

[[nodiscard]] Outcome<int> print_info(bool as_json);

}  // namespace shima::tool
