// The process that serves a mounted directory; `shima mount` starts it with validated arguments:
//
//   shima-fuse [--foreground] [--others] [--log-file FILE] DIRECTORY MOUNT-POINT
//
// It is a separate program, so that the command works without libfuse.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "fuse/calls/mount.h"
#include "fuse/far/far_mount.h"
#include "store/target/paths.h"

int main(int argc, char** argv) {
  shima::fuse::MountOptions options;
  std::vector<std::string> places;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--foreground") {
      options.foreground = true;
    } else if (word == "--others") {
      options.others = true;
    } else if (word == "--log-file" && i + 1 < argc) {
      options.log_file = argv[++i];
    } else {
      places.emplace_back(word);
    }
  }
  if (places.size() != 2) return 2;
  options.directory = places[0];
  options.mount_point = places[1];
  const bool is_far = shima::is_on_node(options.directory);
  const auto status =
      is_far ? shima::fuse::run_far_mount(options) : shima::fuse::run_mount(options);
  if (status) return 0;
  fmt::print(stderr, "shima: mount: {}\n", shima::describe(status.error()));
  return 1;
}
