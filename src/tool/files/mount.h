// `shima mount` and `shima umount`: a folder with striped files, shown as one with ordinary files.
#pragma once

#include <string>

#include "tool/common/failure.h"

namespace shima::tool {

struct MountOptions {
  std::string folder;
  std::string mount_point;
  bool foreground = false;
  bool allow_other = false;
  std::string log_file;
};

// Becomes the process that serves the mount (src/fuse); returns only a failure.
[[nodiscard]] Outcome<int> mount_folder(const MountOptions& options);

// Becomes fusermount3.
[[nodiscard]] Outcome<int> unmount(const std::string& mount_point);

}  // namespace shima::tool
