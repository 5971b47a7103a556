#include "fuse/calls/read_ahead.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace shima::fuse {
namespace {

constexpr int read_ahead_kib = 1024;

// "MAJOR:MINOR" of the mounted file system, without a system call on the mount itself, which may be
// waiting for this process. Paths with blanks are escaped in this file and not found.
std::string device_of(const std::string& mount_point) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string found;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string place;
    words >> id >> parent >> device >> root >> place;
    if (place == mount_point) found = device;  // the last one is on top
  }
  return found;
}

}  // namespace

void enlarge_read_ahead(const std::string& mount_point) {
  const std::string device = device_of(mount_point);
  if (device.empty()) return;
  std::ofstream(fmt::format("/sys/class/bdi/{}/read_ahead_kb", device)) << read_ahead_kib << '\n';
}

}  // namespace shima::fuse
