// Owner and permissions of files in directories to which others may write: set through a descriptor
// of the file itself, since a name may lead to another file, or through a link, a moment later.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "base/result.h"

namespace shima {

// Of a regular file; links are not followed. The name may be a path, with AT_FDCWD.
[[nodiscard]] Status set_mode(int directory_fd, const char* name, mode_t mode);
// Gives a file that this process has just created the owner and permissions of `like`. Refused if
// the name leads to a file that somebody else owns or that has several names.
[[nodiscard]] Status give_new_file(int directory_fd, const char* name, const struct stat& like);

}  // namespace shima
