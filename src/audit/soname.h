// The name that a shared library's file gives itself.
#pragma once

#include "audit/bare.h"

namespace shima::audit {

// Reads DT_SONAME; false where the file is none of this machine's libraries or has no name.
[[nodiscard]] bool read_soname(const char* file, Path& soname);

}  // namespace shima::audit
