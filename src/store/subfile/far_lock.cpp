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

struct flock one_byte(off_t at, short type) {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  return range;
}

}  // namespace

// A read lock needs a readable descriptor. A write lock excludes all others, also the file's
// own former descriptor, so each descriptor that only writes has a byte of its own.
bool FarLock::shared() const { return (flags_ & O_ACCMODE) != O_WRONLY; }

Status FarLock::take(int fd) {
  const off_t byte =
      shared() ? shared_byte : shared_byte + 1 + static_cast<off_t>(std::random_device{}());
  SHIMA_TRY(lock(fd, byte));
  byte_ = byte;
  held_ = true;
  return {};
}

Status FarLock::take_again(int fd) { return held_ ? lock(fd, byte_) : take(fd); }

Status FarLock::lock(int fd, off_t byte) {
  const auto give_up = std::chrono::steady_clock::now() + longest_wait;
  while (true) {
    struct flock range = one_byte(byte, shared() ? F_RDLCK : F_WRLCK);
    if (calls_.try_lock(fd, range) == 0) return {};
    if (errno == EINTR) continue;
    const int sys_errno = errno;
    if (!is_held_by_other(sys_errno) && !needed_) return {};
    if (!is_held_by_other(sys_errno) || std::chrono::steady_clock::now() > give_up)
      return failure(sys_errno);
    std::this_thread::sleep_for(pause);
  }
}

void FarLock::release(int fd) {
  if (!held_) return;
  struct flock range = one_byte(byte_, F_UNLCK);
  std::ignore = calls_.try_lock(fd, range);
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
