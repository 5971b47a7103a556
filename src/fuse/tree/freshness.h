// Whether the pages that the kernel keeps of a file are as the file is.
//
// Changes are counted when they are noticed, and the count is taken over when the kernel has
// dropped its pages; where the two differ it may hold old bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace shima::fuse {

struct Freshness {
  std::atomic<std::uint64_t> changes = 1;
  std::atomic<std::uint64_t> dropped = 1;
  std::atomic<int> readers = 0;  // open descriptors through which it may be read or mapped
  std::atomic<bool> watched = false;

  // On file systems where others may write unnoticed: what the times and sizes were.
  std::atomic<bool> unnoticed = false;
  std::atomic<std::uint64_t> version = 0;

  std::mutex opening;  // guards what follows
  int opens = 0;
  std::vector<int> watches;

  std::mutex appending;  // to a striped file, which has several ends

  [[nodiscard]] bool is_stale() const { return changes.load() != dropped.load(); }
};

}  // namespace shima::fuse
