#include "store/subfile/close_to_open.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

namespace shima {
namespace {

constexpr std::uint32_t nfs_magic = 0x6969;
constexpr std::uint32_t zfs_magic = 0x2fc12fc1;
constexpr std::uint32_t ext4_magic = 0xef53;  // ext2 and ext3 as well
constexpr std::uint32_t overlay_magic = 0x794c7630;

std::uint32_t file_system_type(int fd) {
  struct statfs facts{};
  return ::fstatfs(fd, &facts) == 0 ? static_cast<std::uint32_t>(facts.f_type) : 0;
}

}  // namespace

bool is_close_to_open(int fd) {
  // From statfs(2); linux/magic.h of some systems lacks a few of them.
  constexpr std::array<std::uint32_t, 9> types{
      nfs_magic,
      0x517b,      // SMB
      0xfe534d42,  // SMB 2 and later
      0xff534d42,  // CIFS
      0x65735546,  // FUSE: some of them only, but they cannot be distinguished
      0x01021997,  // 9P
      0x5346414f,  // AFS
      0x6b414653,  // AFS of the kernel
      0x73757245,  // Coda
  };
  return std::ranges::find(types, file_system_type(fd)) != types.end();
}

bool is_nfs(int fd) { return file_system_type(fd) == nfs_magic; }

// Reads the mount options: proc(5), /proc/pid/mountinfo; nfs(5), local_lock.
bool locks_stay_on_node(int fd) {
  struct stat facts{};
  if (!is_nfs(fd) || ::fstat(fd, &facts) != 0) return false;
  const std::string device = fmt::format(" {}:{} ", major(facts.st_dev), minor(facts.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(device) == std::string::npos) continue;
    return line.find(",nolock") != std::string::npos ||
           line.find("local_lock=all") != std::string::npos ||
           line.find("local_lock=posix") != std::string::npos;
  }
  return false;
}

bool is_local(int fd) {
  constexpr std::array<std::uint32_t, 9> types{
      ext4_magic,
      0x58465342,  // XFS
      0x9123683e,  // btrfs
      0x01021994,  // tmpfs
      0xf2f52010,  // F2FS
      zfs_magic,
      0xca451a4e,  // bcachefs
      overlay_magic,
      0x858458f6,  // ramfs
  };
  return std::ranges::find(types, file_system_type(fd)) != types.end();
}

bool maps_what_is_read(int fd) { return is_local(fd) && file_system_type(fd) != overlay_magic; }

bool reserves_mapped_pages(int fd) { return is_local(fd) && file_system_type(fd) != zfs_magic; }

// Not the kernel's boot_id: containers may have another one each.
std::uint64_t local_identity(int fd) {
  struct statfs system{};
  struct statx facts{};
  if (!is_local(fd) || ::fstatfs(fd, &system) != 0 ||
      ::statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &facts) != 0)
    return 0;
  static_assert(sizeof system.f_fsid == sizeof(std::uint64_t));
  std::array<std::uint64_t, 6> parts{0,
                                     facts.stx_dev_major,
                                     facts.stx_dev_minor,
                                     facts.stx_ino,
                                     static_cast<std::uint64_t>(facts.stx_btime.tv_sec),
                                     facts.stx_btime.tv_nsec};
  std::memcpy(parts.data(), &system.f_fsid, sizeof system.f_fsid);
  const std::string_view bytes(reinterpret_cast<const char*>(parts.data()), sizeof parts);
  return std::hash<std::string_view>()(bytes) | 1;
}

Result<int> open_anew(int fd, int flags, const std::string& path) {
  const std::string name = fmt::format("/proc/self/fd/{}", fd);
  int fresh = -1;
  do {
    fresh = ::open(name.c_str(), flags | O_CLOEXEC);
  } while (fresh < 0 && errno == EINTR);
  if (fresh < 0) return fail_errno(errno, fmt::format("opening {} again", path));
  return fresh;
}

Status replace_descriptor(int fd, int fresh, const std::string& path) {
  const int placed = ::dup3(fresh, fd, O_CLOEXEC);
  const int sys_errno = errno;
  ::close(fresh);
  if (placed < 0) return fail_errno(sys_errno, fmt::format("replacing a descriptor of {}", path));
  return {};
}

}  // namespace shima
