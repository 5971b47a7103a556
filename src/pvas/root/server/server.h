// Serves the processes that start tasks, until the root may exit.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/server/space.h"

namespace shima::pvas {

// Serves until no connection is open and none is expected. If `begun` is an error, every request is
// refused with it. `maker`: the process that started the root and connects first.
[[nodiscard]] Status serve(Space& space, UniqueFd listener, pid_t maker, Status begun);

}  // namespace shima::pvas
