// Whether what a space is built on works with the libc that is here.
#pragma once

#include "base/result.h"
#include "pvas/root/server/space.h"

namespace shima::pvas {

// Runs a program that looks at each mend from inside of a task; the error names the one that
// failed.
[[nodiscard]] Status test_mends(Space& space);

}  // namespace shima::pvas
