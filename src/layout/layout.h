// Maps offsets of a logical file to its subfiles.
//
// A file is divided into regions. In each region, blocks of `unit_bytes` are distributed over the
// region's own subfiles in turn; the last region is unbounded. So the bytes of a subfile are in the
// order of the logical file, without holes. A plain file is a layout of one region with one
// subfile; no caller distinguishes the two. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace shima {

// Consecutive bytes of one subfile that are also consecutive in the logical file.
struct Extent {
  int subfile = 0;
  TargetOffset begin;
  std::uint64_t len_bytes = 0;
};

// The description of a region, which ends where the next begins.
struct RegionSpec {
  FileOffset begin;
  std::uint64_t unit_bytes = 0;
  int subfile_count = 0;

  friend bool operator==(const RegionSpec&, const RegionSpec&) = default;
};

inline constexpr FileOffset end_of_space{std::numeric_limits<std::int64_t>::max()};
inline constexpr std::uint64_t largest_unit_bytes = std::uint64_t{1} << 40;
inline constexpr int most_subfiles = 4096;

class Layout {
 public:
  [[nodiscard]] static Layout plain();
  [[nodiscard]] static Layout striped(std::uint64_t unit_bytes, int subfile_count);
  // bad_argument names the broken rule: the first region begins at 0, each later one beyond the
  // previous one; units and numbers of subfiles are limited.
  [[nodiscard]] static Result<Layout> make(std::span<const RegionSpec> regions);

  [[nodiscard]] int subfile_count() const { return subfile_count_; }
  // The place of the byte at `offset`, and how many bytes follow it there, at most `len_bytes`.
  [[nodiscard]] Extent locate(FileOffset offset, std::uint64_t len_bytes) const;
  // The range of the logical file from `at` on that is contiguous in the subfile as well.
  [[nodiscard]] FileRange run_at(int subfile, TargetOffset at) const;
  // How many bytes of a subfile are below `end`.
  [[nodiscard]] TargetOffset below(int subfile, FileOffset end) const;
  // The end of the logical file if its subfiles have these sizes.
  [[nodiscard]] FileOffset end_of_file(std::span<const std::uint64_t> subfile_sizes) const;
  // A common divisor of all offsets at which the file continues in another subfile.
  [[nodiscard]] std::uint64_t granule_bytes() const;
  // The largest size that a subfile can have.
  [[nodiscard]] TargetOffset capacity(int subfile) const { return below(subfile, end_of_space); }

 private:
  struct Region {
    FileRange range;
    std::int64_t unit_bytes;
    int first_subfile;
    int subfile_count;
  };

  Layout() = default;
  void add(const RegionSpec& spec, FileOffset end);
  [[nodiscard]] const Region& region_at(FileOffset offset) const;
  [[nodiscard]] const Region& region_of(int subfile) const;

  std::vector<Region> regions_;
  int subfile_count_ = 0;
};

// Part `turn` of `range` if it is cut into `count` consecutive parts of about one size, whose inner
// boundaries are multiples of `alignment_bytes`. The last parts may be empty.
[[nodiscard]] TargetRange cut_range(TargetRange range, int count, std::uint64_t alignment_bytes,
                                    int turn);
// The part that contains the byte at `at`, which is in `range`.
[[nodiscard]] int cut_containing(TargetRange range, int count, std::uint64_t alignment_bytes,
                                 TargetOffset at);

}  // namespace shima
