#include "ipc/process_vm.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace shima {
namespace {

constexpr std::size_t batch_pieces = IOV_MAX;
constexpr std::uint64_t batch_bytes = std::uint64_t{1} << 30;

// Drops the first `bytes` of a list of pieces in place.
void drop_front(std::span<iovec>& pieces, std::uint64_t bytes) {
  while (bytes > 0 && !pieces.empty()) {
    iovec& piece = pieces.front();
    if (bytes < piece.iov_len) {
      piece.iov_base = static_cast<char*>(piece.iov_base) + bytes;
      piece.iov_len -= bytes;
      return;
    }
    bytes -= piece.iov_len;
    pieces = pieces.subspan(1);
  }
}

}  // namespace

RemoteTransfer::RemoteTransfer(pid_t pid, Direction direction, bool avoids_slow)
    : pid_(pid), direction_(direction), bounce_(direction, {.avoids_slow = avoids_slow}) {
  local_.reserve(batch_pieces);
  remote_.reserve(batch_pieces);
}

void RemoteTransfer::append(std::vector<iovec>& side, std::uintptr_t address,
                            std::uint64_t len_bytes) {
  if (!side.empty()) {
    iovec& last = side.back();
    if (reinterpret_cast<std::uintptr_t>(last.iov_base) + last.iov_len == address) {
      last.iov_len += len_bytes;
      return;
    }
  }
  side.push_back({reinterpret_cast<void*>(address), len_bytes});
}

Status RemoteTransfer::add(std::uintptr_t local, std::uintptr_t remote, std::uint64_t len_bytes) {
  while (len_bytes > 0) {
    if (local_.size() == batch_pieces || remote_.size() == batch_pieces ||
        pending_bytes_ > batch_bytes)
      SHIMA_TRY(flush());
    const iovec given = bounce_.exchange({reinterpret_cast<void*>(local), len_bytes}, remote);
    if (given.iov_len == 0) {
      SHIMA_TRY(flush());
      continue;
    }
    append(local_, reinterpret_cast<std::uintptr_t>(given.iov_base), given.iov_len);
    append(remote_, remote, given.iov_len);
    pending_bytes_ += given.iov_len;
    local += given.iov_len;
    remote += given.iov_len;
    len_bytes -= given.iov_len;
  }
  return {};
}

Status RemoteTransfer::flush() {
  std::span<iovec> local = local_;
  std::span<iovec> remote = remote_;
  const std::uint64_t all_bytes = pending_bytes_;
  while (pending_bytes_ > 0) {
    const auto call = direction_ == Direction::read ? process_vm_readv : process_vm_writev;
    const ssize_t moved = call(pid_, local.data(), local.size(), remote.data(), remote.size(), 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      const int sys_errno = moved == 0 ? EFAULT : errno;
      return fail(
          sys_errno == ESRCH ? Code::peer_lost : Code::bad_argument,
          fmt::format(
              "reaching {} bytes in the memory of process {}: its buffer is not mapped, or the "
              "process has exited",
              pending_bytes_, pid_),
          sys_errno);
    }
    pending_bytes_ -= static_cast<std::uint64_t>(moved);
    drop_front(local, static_cast<std::uint64_t>(moved));
    drop_front(remote, static_cast<std::uint64_t>(moved));
  }
  bounce_.finish(all_bytes);
  local_.clear();
  remote_.clear();
  return {};
}

void allow_reach() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

bool prove_reach(pid_t pid, std::uint64_t address, std::uint64_t nonce) {
  std::uint64_t found = 0;
  const iovec local{&found, sizeof found};
  const iovec remote{reinterpret_cast<void*>(address), sizeof found};
  return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof found && found == nonce;
}

}  // namespace shima
