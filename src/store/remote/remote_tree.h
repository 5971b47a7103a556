// Files by path in directories that I/O nodes serve.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/subfile/file_tree.h"

namespace shima::remote {

using FindKeyFile = std::function<Result<std::string>()>;

[[nodiscard]] std::unique_ptr<FileTree> make_remote_tree(FindKeyFile find_key_file);

}  // namespace shima::remote
