// A file in memory that is mapped, block by block, where tasks touch it.
//
// Until then there is anonymous memory without pages. The kernel lets whoever touches it wait, also
// in the middle of a system call, and says so through a descriptor (userfaultfd); then the block is
// mapped and the waiter goes on.
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
  // `where` is mapped from `offset` of the file on; both begin at a block. access_denied where this
  // process may not have system calls of its tasks wait.
  [[nodiscard]] static Result<LazyMap> make(int file, MemoryRange where, std::uint64_t offset);

  // Readable when somebody waits.
  [[nodiscard]] int fd() const { return faults_.get(); }
  // Serves who waits now.
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
