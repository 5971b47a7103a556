// The file system is a separate program, because only it needs libfuse. This checks the arguments
// before starting it.
#include "tool/files/mount.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "store/target/paths.h"
#include "tool/common/print_failure.h"
#include "tool/common/process.h"

namespace shima::tool {
namespace fs = std::filesystem;
namespace {

fs::path server_path() { return own_directory().parent_path() / "lib" / "shima" / "shima-fuse"; }

Outcome<std::string> existing_directory(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return refuse(path, error.message(), "name an existing directory");
  if (!fs::is_directory(real, error))
    return refuse(path, "it is not a directory",
                  "name a directory to show, and an empty directory as the mount point");
  return real.string();
}

bool lies_in(const fs::path& path, const fs::path& directory) {
  const auto relative = path.lexically_relative(directory);
  return !relative.empty() && *relative.begin() != "..";
}

Outcome<void> check_machine() {
  if (!fs::exists(server_path()))
    return refuse("shima mount", "this Shima was built without libfuse3",
                  "install libfuse3-dev and fuse3 (scripts/setup does) and build it again");
  if (access("/dev/fuse", R_OK | W_OK) != 0)
    return refuse("/dev/fuse", std::strerror(errno),
                  "load the kernel's module fuse, or start the container with --device /dev/fuse "
                  "--cap-add SYS_ADMIN");
  return {};
}

// In /proc/self/mounts blanks are written in octal.
std::string mount_word(const std::string& path) {
  std::string word;
  for (const char c : path)
    word += c == ' ' || c == '\t' || c == '\n' || c == '\\'
                ? fmt::format("\\{:03o}", static_cast<unsigned char>(c))
                : std::string(1, c);
  return word;
}

bool is_our_mount(const std::string& mount_point) {
  std::ifstream mounts("/proc/self/mounts");
  bool ours = false;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string source;
    std::string place;
    std::string type;
    words >> source >> place >> type;
    if (place == mount_word(mount_point)) ours = type == "fuse.shima";  // the last entry is on top
  }
  return ours;
}

}  // namespace

Outcome<int> mount_directory(const MountOptions& options) {
  if (auto status = check_machine(); !status) return std::unexpected(status.error());
  const auto meant = path_meant_by(options.directory);
  if (!meant) return std::unexpected(failure_of("shima mount", meant.error()));
  const bool is_far = is_on_node(*meant);
  auto directory = is_far ? Outcome<std::string>(*meant) : existing_directory(options.directory);
  if (!directory) return std::unexpected(directory.error());
  auto mount_point = existing_directory(options.mount_point);
  if (!mount_point) return std::unexpected(mount_point.error());
  if (is_far && !is_directory_at(*meant))
    return refuse(*meant, "it is not a directory that an I/O node serves and this user can reach",
                  "ask the node by `shima iod --status`");
  if (lies_in(*directory, *mount_point) || lies_in(*mount_point, *directory))
    return refuse(options.mount_point,
                  "the mount point is inside " + *directory + ", or contains it",
                  "choose a directory outside it");
  if (is_our_mount(*mount_point))
    return refuse(options.mount_point, "a directory is already mounted there",
                  "unmount it with `shima umount " + options.mount_point + "`");
  Command command{server_path().string()};
  if (options.foreground) command.emplace_back("--foreground");
  if (options.allow_other) command.emplace_back("--others");
  if (!options.log_file.empty()) {
    command.emplace_back("--log-file");
    command.push_back(fs::absolute(options.log_file).string());
  }
  command.push_back(*directory);
  command.push_back(*mount_point);
  return std::unexpected(become(command));
}

Outcome<int> unmount(const std::string& mount_point) {
  // Makes no system call on the mount itself: unmounting must work without its server.
  std::error_code error;
  const fs::path given = fs::absolute(mount_point, error).lexically_normal();
  const fs::path name = given.has_filename() ? given : given.parent_path();
  const fs::path place = fs::canonical(name.parent_path(), error) / name.filename();
  if (error || !is_our_mount(place.string()))
    return refuse(mount_point, "it is no mount point of shima mount",
                  "the entries of type fuse.shima in /proc/mounts are mount points");
  if (!find_program("fusermount3"))
    return refuse("fusermount3", "it is not installed", "install fuse3");
  return std::unexpected(become({"fusermount3", "-u", place.string()}));
}

}  // namespace shima::tool
