// Counts the allocations of the command, for `shima simulate`.
#pragma once

#include "simulate/meter.h"

namespace shima::tool {

[[nodiscard]] simulate::Allocations count_allocations();

}  // namespace shima::tool
