#include "store/subfile/far_lock.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <thread>
#include <tuple>

namespace shima {
namespace {

constexpr off_t shared_byte = off_t{1} << 62;
constexpr std::chrono::seconds longest_wait{60};
constexpr std::chrono::milliseconds pause{20};

bool is_held_by_other(int sys_errno) { return sys_errno == EAGAIN || sys_errno == EACCES; }

}  // namespace

// A read lock needs a readable descriptor. A write lock excludes all others, so each write-only
// descriptor locks its own byte.
struct flock FarLock::range() {
  struct flock range{};
  range.l_whence = SEEK_SET;
  range.l_start = shared_byte;
  range.l_len = 1;
  range.l_type = F_RDLCK;
  if ((flags_ & O_ACCMODE) != O_WRONLY) return range;
  if (!held_) own_byte_ = shared_byte + 1 + static_cast<off_t>(std::random_device{}());
  range.l_start = own_byte_;
  range.l_type = F_WRLCK;
  return range;
}

Status FarLock::take(int fd) {
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (true) {
    struct flock wanted = range();
    if (calls_.try_lock(fd, wanted) == 0) break;
    if (errno == EINTR) continue;
    const int sys_errno = errno;
    if (!is_held_by_other(sys_errno) && !needed_) break;
    if (!is_held_by_other(sys_errno) || std::chrono::steady_clock::now() > give_up)
      return failure(sys_errno);
    std::this_thread::sleep_for(pause);
  }
  held_ = true;
  return {};
}

void FarLock::release(int fd) {
  if (!held_) return;
  struct flock wanted = range();
  wanted.l_type = F_UNLCK;
  std::ignore = calls_.try_lock(fd, wanted);
  held_ = false;
}

std::unexpected<Error> FarLock::failure(int sys_errno) const {
  if (is_held_by_other(sys_errno))
    return fail_errno(sys_errno,
                      fmt::format("another process holds a lock on all of {}, also beyond its end; "
                                  "that process must release it",
                                  path_));
  return fail_errno(
      sys_errno,
      fmt::format("{} is on NFS, where the bytes of other nodes are safe only under a lock "
                  "(fcntl), which cannot be taken; mount it with a lock service, or with "
                  "the option local_lock=posix",
                  path_));
}

}  // namespace shima
