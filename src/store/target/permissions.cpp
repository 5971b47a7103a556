#include "store/target/permissions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

Result<UniqueFd> open_entry(int directory_fd, const char* name) {
  UniqueFd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return failed("opening", name);
  if (!S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
    return fail(Code::bad_file, std::string(name) + " is neither a regular file nor a directory");
  return fd;
}

// By /proc, because fchmod refuses such a descriptor (O_PATH).
Status change_mode(const UniqueFd& fd, const char* name, mode_t mode) {
  if (::chmod(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), mode) != 0)
    return failed("changing the permissions of", name);
  return {};
}

}  // namespace

uid_t acting_user() {
  constexpr uid_t none = static_cast<uid_t>(-1);  // changes nothing
  return static_cast<uid_t>(::setfsuid(none));
}

// access(2) checks for the real user, and AT_EACCESS for the acting one, but only in the kernel:
// where it does not know the flag, the C library compares with the process's user.
Status check_writable_directory(const std::string& directory) {
  constexpr int how = W_OK | X_OK;
  long code = ::syscall(SYS_faccessat2, AT_FDCWD, directory.c_str(), how, AT_EACCESS);
  if (code != 0 && errno == ENOSYS) code = ::access(directory.c_str(), how);
  return code == 0 ? Status{} : Status(failed("writing to", directory));
}

Status set_mode(int directory_fd, const char* name, mode_t mode) {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, open_entry(directory_fd, name));
  return change_mode(fd, name, mode);
}

Status set_times(int directory_fd, const char* name, const FileTimes& times) {
  if (::utimensat(directory_fd, name, times.data(), AT_SYMLINK_NOFOLLOW) != 0)
    return failed("setting the times of", name);
  return {};
}

Status give_new_file(int directory_fd, const char* name, const struct stat& like) {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, open_entry(directory_fd, name));
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return failed("examining", name);
  if (!S_ISREG(facts.st_mode) || facts.st_uid != acting_user() || facts.st_nlink > 1)
    return fail(Code::access_denied, std::string(name) + " was replaced by another file");
  const bool owned = facts.st_uid == like.st_uid && facts.st_gid == like.st_gid;
  const Status owner =
      owned || ::fchownat(fd.get(), "", like.st_uid, like.st_gid, AT_EMPTY_PATH) == 0
          ? Status{}
          : failed("changing the owner of", name);
  const Status mode = change_mode(fd, name, like.st_mode & 0777U);
  return owner ? mode : owner;
}

}  // namespace shima
