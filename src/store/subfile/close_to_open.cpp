#include "store/subfile/close_to_open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace shima {

bool is_close_to_open(int fd) {
  // statfs(2); not all of them are in linux/magic.h of every system.
  constexpr std::array<std::uint32_t, 9> types{
      0x6969,      // NFS
      0x517b,      // SMB
      0xfe534d42,  // SMB 2 and later
      0xff534d42,  // CIFS
      0x65735546,  // FUSE: not all, but nothing tells which
      0x01021997,  // 9P
      0x5346414f,  // AFS
      0x6b414653,  // AFS of the kernel
      0x73757245,  // Coda
  };
  struct statfs facts{};
  return ::fstatfs(fd, &facts) == 0 &&
         std::ranges::find(types, static_cast<std::uint32_t>(facts.f_type)) != types.end();
}

Status open_anew(int fd, int flags, const std::string& path) {
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  int fresh = -1;
  do {
    fresh = ::open(name.c_str(), flags | O_CLOEXEC);
  } while (fresh < 0 && errno == EINTR);
  if (fresh < 0)
    return fail_errno(errno, fmt::format("opening {} anew to see what others wrote", path));
  const int placed = ::dup3(fresh, fd, O_CLOEXEC);
  const int sys_errno = errno;
  ::close(fresh);
  if (placed < 0) return fail_errno(sys_errno, fmt::format("replacing a descriptor of {}", path));
  return {};
}

}  // namespace shima
