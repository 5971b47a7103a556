// Finds the library that the dynamic loader would find.
#pragma once

#include <link.h>

#include "audit/bare.h"

namespace shima::audit {

// Searches for `name` as the loader does on behalf of `requester`: a path is taken as it is; a name
// is searched in DT_RPATH, LD_LIBRARY_PATH and DT_RUNPATH. False if none has it: then the search is
// left to the loader, which knows its cache and the system's directories.
[[nodiscard]] bool find_as_loader(std::string_view name, const link_map* requester, Path& found);

// The same in the system's directories.
[[nodiscard]] bool find_in_system(std::string_view name, Path& found);

// A variable of the environment with which the process started; empty if it is not set.
[[nodiscard]] std::string_view initial_environment(std::string_view variable);

}  // namespace shima::audit
