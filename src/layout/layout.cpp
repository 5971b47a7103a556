#include "layout/layout.h"

#include <algorithm>

namespace shima {

Layout Layout::plain() { return {0, 1}; }
Layout Layout::striped(std::uint64_t unit_bytes, int subfile_count) {
  return {unit_bytes, subfile_count};
}

Extent Layout::locate(FileOffset offset, std::uint64_t len_bytes) const {
  if (unit_bytes_ == 0) return {0, TargetOffset{offset.value}, len_bytes};
  const std::uint64_t at = as_unsigned(offset.value);
  const std::uint64_t block = at / unit_bytes_;
  const std::uint64_t within = at % unit_bytes_;
  const auto count = static_cast<std::uint64_t>(subfile_count_);
  return {static_cast<int>(block % count),
          TargetOffset{as_signed(block / count * unit_bytes_ + within)},
          std::min(len_bytes, unit_bytes_ - within)};
}

std::vector<FileRange> cut_into_domains(FileRange range, int count, std::uint64_t alignment_bytes) {
  std::vector<FileRange> domains;
  const std::int64_t align = as_signed(std::max<std::uint64_t>(alignment_bytes, 1));
  const std::int64_t share = (range.end - range.begin + count - 1) / std::max(count, 1);
  FileOffset begin = range.begin;
  while (begin < range.end) {
    const std::int64_t aligned =
        (begin.value + std::max<std::int64_t>(share, 1) + align - 1) / align * align;
    const FileOffset end = static_cast<int>(domains.size()) + 1 == count
                               ? range.end
                               : std::min(range.end, FileOffset{aligned});
    domains.push_back({begin, end});
    begin = end;
  }
  return domains;
}

}  // namespace shima
