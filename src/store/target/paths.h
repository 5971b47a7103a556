// Paths of files, on this machine or on an I/O node.
//
// "iod://HOST:PORT/NAME/file" is a file in the directory that the node serves as NAME. SHIMA_PATHS
// maps directories of this machine to such places, for programs that know no other paths. Only the
// functions that take names from a program or a user apply the map.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/subfile/file_tree.h"

namespace shima {

// Through which the path is reached.
[[nodiscard]] FileTree& tree_at(const std::string& path);
[[nodiscard]] bool is_on_node(std::string_view path);

// The path that a program means by `name`. bad_argument if SHIMA_PATHS has an invalid entry.
[[nodiscard]] Result<std::string> path_meant_by(const std::string& name);

// Stays valid when the program changes its directory.
[[nodiscard]] std::string name_from_anywhere(const std::string& path);
// With all links followed. The file must exist.
[[nodiscard]] Result<std::string> real_path_of(const std::string& path);
// With all links of its directory followed: the name that rename(2) and unlink(2) act on.
[[nodiscard]] Result<std::string> real_name_of(const std::string& path);
// With all links followed, also if there is no file yet.
[[nodiscard]] Result<std::string> real_or_new_path_of(const std::string& path);

[[nodiscard]] bool exists_at(const std::string& path);
[[nodiscard]] bool is_directory_at(const std::string& path);
// Whether both paths lead to one file or directory.
[[nodiscard]] bool are_same_file(const std::string& a, const std::string& b);
// The same for what examinations found: true also for a file system that is reached in two ways,
// over a network for example.
[[nodiscard]] bool are_same_file(const struct stat& a, const struct stat& b);

// The directory of a path, "." for a mere name.
[[nodiscard]] std::string directory_of_path(const std::string& path);

}  // namespace shima
