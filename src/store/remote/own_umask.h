// The umask of this process.
#pragma once

#include <sys/types.h>

namespace shima::remote {

[[nodiscard]] mode_t own_umask();

}  // namespace shima::remote
