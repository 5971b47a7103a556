// Allocation of ranges in a task's donated memory: first fit, in granules.
#pragma once

#include <map>

#include "base/result.h"
#include "dsm/protection.h"

namespace shima::dsm {

class Ranges {
 public:
  explicit Ranges(std::uint64_t size_bytes) {
    if (size_bytes >= granule_bytes) free_.emplace(0, size_bytes / granule_bytes);
  }

  [[nodiscard]] Result<Granules> allocate(std::uint64_t size_bytes);
  // The range that begins there; it may be allocated again at once.
  [[nodiscard]] Result<Granules> release(std::uint64_t offset);

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  // first granule: count; neighbours are joined
  std::map<std::uint64_t, std::uint64_t> used_;
};

}  // namespace shima::dsm
