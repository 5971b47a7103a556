// Maps a memfd block by block, when tasks touch it.
//
// Until then the range is anonymous memory without pages. On a first touch, also inside a system
// call, the kernel suspends the toucher and reports the fault through a descriptor (userfaultfd);
// the block is mapped, and the toucher continues.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/shared/names.h"

namespace shima::pvas {

inline constexpr std::uint64_t lazy_block_bytes = std::uint64_t{2} << 20;

class LazyMap {
 public:
  // Maps `where` from `offset` of the file on; both are multiples of a block. access_denied if this
  // process may not handle faults of its tasks' system calls.
  [[nodiscard]] static Result<LazyMap> make(int file, MemoryRange where, std::uint64_t offset);

  // Readable when there is a fault to serve.
  [[nodiscard]] int fd() const { return faults_.get(); }
  // Serves the pending faults.
  void serve();

 private:
  LazyMap(UniqueFd faults, int file, MemoryRange where, std::uint64_t offset);
  [[nodiscard]] bool map(std::uint64_t begin, std::uint64_t bytes) const;
  void map_block(std::uint64_t address);
  void map_all();

  UniqueFd faults_;
  int file_;
  MemoryRange where_;
  std::uint64_t offset_;
  std::vector<bool> mapped_;
};

}  // namespace shima::pvas
