// Owner and permissions of files in directories to which others may write: set through a descriptor
// of the file itself, since a name may lead to another file, or through a link, a moment later.
#pragma once

#include <sys/types.h>

#include "base/result.h"

namespace shima {

// Of a regular file; links are not followed. The name may be a path, with AT_FDCWD.
[[nodiscard]] Status set_mode(int directory_fd, const char* name, mode_t mode);
[[nodiscard]] Status set_owner(int directory_fd, const char* name, uid_t user, gid_t group);

}  // namespace shima
