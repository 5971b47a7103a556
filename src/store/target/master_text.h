// The texts of master files on this machine: reading one, and replacing it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/subfile/file_tree.h"

namespace shima {

// See FileTree, whose local implementation these are. `path` of a replaced file is no link.
[[nodiscard]] Result<std::optional<FileTree::Text>> read_master_text(const std::string& path);
[[nodiscard]] Status replace_master_text(const std::string& path, std::string_view text,
                                         FileTree::Replacing how);

}  // namespace shima
