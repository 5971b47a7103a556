// Tests whether this machine's libc supports what a space is built on.
#pragma once

#include "base/result.h"
#include "pvas/root/server/space.h"

namespace shima::pvas {

// Runs pvas-probe as a task; the error names the check that failed.
[[nodiscard]] Status run_self_test(Space& space);

}  // namespace shima::pvas
