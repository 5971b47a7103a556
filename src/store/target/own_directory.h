// The directory .shima, in which a directory keeps what its striped files need: subfiles beside
// them, and the lock.
//
// It is created, examined and given its owner and mode through descriptors, never by name: a user
// who may rename files in the parent could replace it at any moment. To be used for new files, it
// must belong to us, to the parent's owner, to the owner of the file concerned, or to a member of
// the group that shares the parent; any other owner could replace its content.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima {

inline constexpr const char* own_directory_name = ".shima";
inline constexpr const char* lock_file_name = ".lock";  // in .shima

// The directory .shima of the files in `directory`.
[[nodiscard]] std::string own_directory_of(const std::string& directory);

enum class IfMissing { fail, make };
// `path`: of a file, which need not exist. no_such_file if there is none to open.
[[nodiscard]] Result<UniqueFd> open_own_directory(const std::string& path, IfMissing what);

// Removes it if it holds neither parts nor other files to keep (ENOTEMPTY), and no process works in
// it (EBUSY).
[[nodiscard]] Status remove_own_directory(int directory_fd, const std::string& directory);

}  // namespace shima
