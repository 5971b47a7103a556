// The text of a file, whose end or error may come at any time.
//
// A file of /proc has an error in the middle if its process ends, and a directory can be opened but
// not read: streams tell of both by an exception that names neither.
#pragma once

#include <string>

#include "base/result.h"

namespace shima {

// Errors: those of open and read, with the errno.
[[nodiscard]] Result<std::string> file_text(const std::string& path);

}  // namespace shima
