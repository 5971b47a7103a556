#include "store/target/own_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "store/subfile/close_to_open.h"
#include "store/target/directory_lock.h"
#include "store/target/directory_names.h"
#include "store/target/permissions.h"
#include "store/target/target.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

constexpr uid_t nobody = 65534;  // the user that servers map root, or all users, to

Result<UniqueFd> open_directory(int at, const std::string& path, const std::string& full) {
  UniqueFd fd(::openat(at, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && (errno == ENOTDIR || errno == ELOOP))
    return fail(Code::bad_file,
                full + " is not a directory; Shima needs the name, move the file away", errno);
  if (!fd) return failed("opening", full);
  return fd;
}

// Gives it the owner and mode of its parent directory, as far as permitted: users who can create
// files there need subfiles for them. A directory that another process put in its place has another
// owner or is not empty, and is left unchanged.
Status open_up(int fd, const struct stat& parent, const std::string& path) {
  struct stat made{};
  if (::fstat(fd, &made) != 0) return failed("examining", path);
  SHIMA_TRY_ASSIGN(const auto names, names_in(fd, path));
  if (made.st_uid != acting_user() || !names.empty()) return {};
  if (::fchown(fd, parent.st_uid, parent.st_gid) != 0)
    std::ignore = ::fchown(fd, static_cast<uid_t>(-1), parent.st_gid);
  std::ignore = ::fchmod(fd, parent.st_mode & 03777U);
  return {};
}

// In a directory shared by a group, without the sticky bit, any member can replace any file; the
// first member creates the directory for all.
bool is_shared_by_group(const struct stat& own, const struct stat& parent) {
  return (parent.st_mode & S_IWGRP) != 0 && (parent.st_mode & (S_IWOTH | S_ISVTX)) == 0 &&
         own.st_gid == parent.st_gid;
}

Status check_owner(int fd, const struct stat& parent, const std::string& path,
                   const std::string& directory) {
  struct stat own{};
  struct stat file{};
  if (::fstat(fd, &own) != 0) return failed("examining", directory);
  if (own.st_uid == acting_user() || own.st_uid == parent.st_uid) return {};
  if (::lstat(path.c_str(), &file) == 0 && own.st_uid == file.st_uid) return {};
  if (is_shared_by_group(own, parent)) return {};
  if (own.st_uid == nobody && is_close_to_open(fd)) return {};
  return fail(Code::access_denied,
              fmt::format("{} belongs to user {}, which is neither this user nor the owner of the "
                          "directory that contains it; have it removed, or put the file into "
                          "another directory",
                          directory, own.st_uid),
              EACCES);
}

}  // namespace

std::string own_directory_of(const std::string& directory) {
  return (std::filesystem::path(directory) / own_directory_name).string();
}

Result<UniqueFd> open_own_directory(const std::string& path, IfMissing what) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string directory = own_directory_of(parent);
  const UniqueFd parent_fd(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat facts{};
  if (!parent_fd || ::fstat(parent_fd.get(), &facts) != 0) return failed("opening", parent);
  const bool made =
      what == IfMissing::make && ::mkdirat(parent_fd.get(), own_directory_name, 0700) == 0;
  if (!made && what == IfMissing::make && errno != EEXIST) return failed("making", directory);
  SHIMA_TRY_ASSIGN(UniqueFd fd, open_directory(parent_fd.get(), own_directory_name, directory));
  if (made) SHIMA_TRY(open_up(fd.get(), facts, directory));
  SHIMA_TRY(check_owner(fd.get(), facts, path, directory));
  return fd;
}

Status remove_own_directory(int directory_fd, const std::string& directory) {
  const std::string path = own_directory_of(directory);
  SHIMA_TRY_ASSIGN(const UniqueFd own, open_directory(directory_fd, own_directory_name, path));
  const auto lock = DirectoryLock::try_take(path, DirectoryLock::IfUnused::leave);
  if (!lock && lock.error().code != Code::file_in_use) return std::unexpected(lock.error());
  if (!lock) return fail_errno(EBUSY, "removing " + path);
  SHIMA_TRY_ASSIGN(const auto names, names_in(own.get(), path));
  constexpr std::array<std::string_view, 2> worthless{target_marker, lock_file_name};
  if (!std::ranges::all_of(names, [&](const std::string& name) {
        return std::ranges::find(worthless, name) != worthless.end();
      }))
    return fail_errno(ENOTEMPTY, path + " holds parts that belong to no file here; run shima fsck");
  for (const std::string& name : names)
    if (::unlinkat(own.get(), name.c_str(), 0) != 0) return failed("removing", path + "/" + name);
  if (::unlinkat(directory_fd, own_directory_name, AT_REMOVEDIR) != 0)
    return failed("removing", path);
  return {};
}

}  // namespace shima
