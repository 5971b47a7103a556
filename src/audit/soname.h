// The soname in a shared library's file.
#pragma once

#include "audit/bare.h"

namespace shima::audit {

// Reads DT_SONAME; false if the file is not a library for this machine or has no soname.
[[nodiscard]] bool read_soname(const char* file, Path& soname);

}  // namespace shima::audit
