#include "iod/identity.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace shima::iod {
namespace {

std::unexpected<Error> no_such_user(const std::string& user, int sys_errno) {
  return fail(Code::bad_argument, fmt::format("there is no user {} on this machine", user),
              sys_errno);
}

// No capability survives, whatever the secure bits of the process are.
bool drop_capabilities() {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return ::syscall(SYS_capset, &head, none.data()) == 0;
}

}  // namespace

Result<Identity> find_identity(const std::string& user) {
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(user.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr) return no_such_user(user, error);
  Identity identity{entry.pw_uid, entry.pw_gid, std::vector<gid_t>(64)};
  int count = static_cast<int>(identity.groups.size());
  while (::getgrouplist(user.c_str(), entry.pw_gid, identity.groups.data(), &count) < 0) {
    if (count <= static_cast<int>(identity.groups.size())) return no_such_user(user, errno);
    identity.groups.resize(static_cast<std::size_t>(count));
  }
  identity.groups.resize(static_cast<std::size_t>(count));
  return identity;
}

// The functions of the C library would change all threads of the process. Those for files return no
// errors: asked for an impossible ID, they say which is set.
Status take_identity(const Identity& identity) {
  constexpr long impossible = -1;
  const bool has_groups =
      ::syscall(SYS_setgroups, identity.groups.size(), identity.groups.data()) == 0;
  if (!has_groups) return fail_errno(errno, fmt::format("taking groups of user {}", identity.user));
  ::syscall(SYS_setfsgid, identity.group);
  ::syscall(SYS_setfsuid, identity.user);
  const bool has_ids = ::syscall(SYS_setfsgid, impossible) == static_cast<long>(identity.group) &&
                       ::syscall(SYS_setfsuid, impossible) == static_cast<long>(identity.user);
  if (!has_ids) return fail_errno(EPERM, fmt::format("becoming user {}", identity.user));
  if (!drop_capabilities())
    return fail_errno(errno, fmt::format("giving up the capabilities as user {}", identity.user));
  return {};
}

}  // namespace shima::iod
