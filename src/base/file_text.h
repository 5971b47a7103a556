// The text of a file, whose end or error may come at any time.
//
// A file of /proc has an error in the middle if its process ends, and a directory can be opened but
// not read: streams tell of both by an exception that names neither.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace shima {

// Errors: those of open and read, with the errno.
[[nodiscard]] Result<std::string> file_text(const std::string& path);
// The text from the current position of an open file or pipe on, or its beginning. `path` is for
// the error.
[[nodiscard]] Result<std::string> read_up_to(int fd, std::size_t most_bytes,
                                             const std::string& path);

}  // namespace shima
