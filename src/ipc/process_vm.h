// Access to the memory of another process on the same node.
//
// One call moves many pieces; the two sides may be divided differently. Partial transfers are
// resumed. Source: process_vm_readv(2).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <vector>

#include "base/copy/bounce_buffer.h"
#include "base/direction.h"
#include "base/result.h"

namespace shima {

// Collects pieces of one transfer between this process and `pid` and moves them in batches.
class RemoteTransfer {
 public:
  // read: remote memory -> local memory. write: local -> remote. `avoids_slow`: copies at a slow
  // distance (base/copy/distance.h), for which this process must be able to touch local memory.
  RemoteTransfer(pid_t pid, Direction direction, bool avoids_slow = has_slow_distances());

  // Adds pieces of equal total length to each side; moves a batch when one is full.
  [[nodiscard]] Status add(std::uintptr_t local, std::uintptr_t remote, std::uint64_t len_bytes);
  // Moves the remaining pieces.
  [[nodiscard]] Status flush();

 private:
  static void append(std::vector<iovec>& side, std::uintptr_t address, std::uint64_t len_bytes);

  pid_t pid_;
  Direction direction_;
  BounceBuffer bounce_;
  std::uint64_t pending_bytes_ = 0;
  std::vector<iovec> local_;
  std::vector<iovec> remote_;
};

// Lets every process of this user access this one, if the kernel requires consent (Yama).
void allow_reach();

// Whether `pid` is accessible: reads 8 bytes at `address` there and compares them with `nonce`.
[[nodiscard]] bool prove_reach(pid_t pid, std::uint64_t address, std::uint64_t nonce);

}  // namespace shima
