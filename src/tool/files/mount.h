// `shima mount` and `shima umount`: a directory in which striped files appear as ordinary files.
#pragma once

#include <string>

#include "tool/common/failure.h"

namespace shima::tool {

struct MountOptions {
  std::string directory;
  std::string mount_point;
  bool foreground = false;
  bool allow_other = false;
  std::string log_file;
};

// Replaces this process by the server of the mount (src/fuse); returns only on failure.
[[nodiscard]] Outcome<int> mount_directory(const MountOptions& options);

// Replaces this process by fusermount3.
[[nodiscard]] Outcome<int> unmount(const std::string& mount_point);

}  // namespace shima::tool
