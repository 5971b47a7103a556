// The cores of this host on which this process may run, by hwloc.
#pragma once

#include "dse/plan/machine.h"

namespace shima::dse {

// hwloc is opened at run time. Without it, each CPU is a core, and all are equally near.
[[nodiscard]] Machine machine_here();
[[nodiscard]] Machine machine_without_hwloc();

}  // namespace shima::dse
