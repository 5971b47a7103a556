// WHERE bytes lie: from a logical file to its subfiles.
//
// Striping blocks of `unit_bytes` are dealt over `subfile_count` subfiles in order. A plain file is
// the layout of one subfile with a unit without end; nothing above asks which of the two it has.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shima {

// Consecutive bytes of one subfile that are also consecutive in the logical file.
struct Extent {
  int subfile = 0;
  TargetOffset begin;
  std::uint64_t len_bytes = 0;
};

class Layout {
 public:
  [[nodiscard]] static Layout plain();
  [[nodiscard]] static Layout striped(std::uint64_t unit_bytes, int subfile_count);

  [[nodiscard]] int subfile_count() const { return subfile_count_; }
  // Where the byte at `offset` lies, and how many bytes follow it there, at most `len_bytes`.
  [[nodiscard]] Extent locate(FileOffset offset, std::uint64_t len_bytes) const;

 private:
  Layout(std::uint64_t unit_bytes, int subfile_count)
      : unit_bytes_(unit_bytes), subfile_count_(subfile_count) {}

  std::uint64_t unit_bytes_;  // 0: without end
  int subfile_count_;
};

// Cuts `range` into at most `count` consecutive ranges of about one size whose inner boundaries are
// multiples of `alignment_bytes`. Empty ranges are left out.
[[nodiscard]] std::vector<FileRange> cut_into_domains(FileRange range, int count,
                                                      std::uint64_t alignment_bytes);

}  // namespace shima
