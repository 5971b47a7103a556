// Whether the kernel's cached pages of a file are current.
//
// Changes are counted when they are noticed; the count is copied when the kernel has dropped its
// pages. If the two differ, the kernel may hold old bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/turn.h"

namespace shima::fuse {

struct Freshness {
  std::atomic<std::uint64_t> changes = 1;
  std::atomic<std::uint64_t> dropped = 1;
  std::atomic<int> readers = 0;  // open descriptors that may read or map it
  std::atomic<bool> watched = false;

  // On file systems where others may write unnoticed: the last known times and sizes.
  std::atomic<bool> unnoticed = false;
  std::atomic<std::uint64_t> version = 0;

  std::mutex opening;  // guards the members below
  int opens = 0;
  std::vector<int> watches;

  Turn appending;  // appends to a striped file touch several subfiles

  [[nodiscard]] bool is_stale() const { return changes.load() != dropped.load(); }
};

}  // namespace shima::fuse
