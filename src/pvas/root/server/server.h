// The root's conversation with those who start tasks, until it is time to leave.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/server/space.h"

namespace shima::pvas {

// Serves until nobody is there and nobody is expected. With an error as `begun` everybody is
// refused with it. `maker`: the process that has made the root and will be the first to come.
[[nodiscard]] Status serve(Space& space, UniqueFd listener, pid_t maker, Status begun);

}  // namespace shima::pvas
