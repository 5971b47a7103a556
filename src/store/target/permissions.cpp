#include "store/target/permissions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

Result<UniqueFd> open_regular(int directory_fd, const char* name) {
  UniqueFd fd(::openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return failed("opening", name);
  if (!S_ISREG(facts.st_mode))
    return fail(Code::bad_file, std::string(name) + " is no regular file");
  return fd;
}

}  // namespace

// Such a descriptor is only a place, which fchmod does not take.
Status set_mode(int directory_fd, const char* name, mode_t mode) {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, open_regular(directory_fd, name));
  if (::chmod(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), mode) != 0)
    return failed("changing the permissions of", name);
  return {};
}

Status set_owner(int directory_fd, const char* name, uid_t user, gid_t group) {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, open_regular(directory_fd, name));
  if (::fchownat(fd.get(), "", user, group, AT_EMPTY_PATH) != 0)
    return failed("changing the owner of", name);
  return {};
}

}  // namespace shima
