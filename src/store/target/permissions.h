// Owner and permissions of files in directories to which other users may write: set through a
// descriptor of the file itself, since a moment later the name may refer to another file or to a
// link.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "store/subfile/target_files.h"

namespace shima {

// As whom the kernel lets this thread use files. A thread of an I/O node may act as another user.
[[nodiscard]] uid_t acting_user();
// As acting_user(), and through the paths of /proc, too.
[[nodiscard]] Status check_writable_directory(const std::string& directory);

// Links are not followed, and have times but no permissions. The name may be a path, with AT_FDCWD.
[[nodiscard]] Status set_mode(int directory_fd, const char* name, mode_t mode);
[[nodiscard]] Status set_times(int directory_fd, const char* name, const FileTimes& times);
// Gives a file that this process has just created the owner and permissions of `like`. Refused if
// the name refers to another user's file or to one with several names.
[[nodiscard]] Status give_new_file(int directory_fd, const char* name, const struct stat& like);

}  // namespace shima
