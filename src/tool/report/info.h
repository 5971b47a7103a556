// `shima info`: this installation of Shima, and what works on this machine.
#pragma once

#include "tool/common/failure.h"

namespace shima::tool {

[[nodiscard]] Outcome<int> print_info(bool as_json);

}  // namespace shima::tool
