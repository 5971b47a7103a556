// The names in a directory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace shima {

// All names but "." and "..". `directory_fd` may be open as a path only (O_PATH); `path` is for
// messages.
[[nodiscard]] Result<std::vector<std::string>> names_in(int directory_fd, const std::string& path);

}  // namespace shima
