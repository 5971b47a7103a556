// The root's conversation with those who start tasks, until it is time to leave.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/root/space.h"

namespace shima::pvas {

// Serves until nobody is there and nobody is expected.
[[nodiscard]] Status serve(Space& space, UniqueFd listener);

}  // namespace shima::pvas
