// The directory .shima, in which a directory keeps what its striped files need: subfiles beside
// them, and the lock.
//
// It is made, examined and given its owner and mode through descriptors, never by name: whoever may
// rename files in the directory could put another one in its place at any moment. To be used for
// what is made, it must belong to us, to the directory's owner, to the owner of the file that it is
// for, or to a member of the group that shares the directory; anybody else could exchange what is
// in it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima {

inline constexpr const char* own_directory_name = ".shima";
inline constexpr const char* lock_file_name = ".lock";  // in it

// Of the files in `directory`.
[[nodiscard]] std::string own_directory_of(const std::string& directory);

enum class IfMissing { fail, make };
// `path`: of a file, which need not be there. no_such_file if there is none to open.
[[nodiscard]] Result<UniqueFd> open_own_directory(const std::string& path, IfMissing what);

// Removes it if it holds neither parts nor anything else of worth (ENOTEMPTY), and nobody is at
// work there (EBUSY).
[[nodiscard]] Status remove_own_directory(int directory_fd, const std::string& directory);

}  // namespace shima
