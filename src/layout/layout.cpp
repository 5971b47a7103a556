#include "layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shima {
namespace {

// The striping unit of a plain file; no file is longer.
constexpr std::uint64_t endless_unit_bytes = std::uint64_t{1} << 62;

Status check(std::span<const RegionSpec> regions) {
  if (regions.empty()) return fail(Code::bad_argument, "a layout needs a region");
  int subfiles = 0;
  FileOffset previous{-1};
  for (const RegionSpec& region : regions) {
    if (&region == &regions.front() && region.begin.value != 0)
      return fail(
          Code::bad_argument,
          fmt::format("the first region begins at {}; it must begin at 0", region.begin.value));
    if (region.begin <= previous)
      return fail(Code::bad_argument,
                  fmt::format("regions overlap: one begins at {}, the next at {}", previous.value,
                              region.begin.value));
    if (region.unit_bytes == 0 || region.unit_bytes > largest_unit_bytes)
      return fail(Code::bad_argument, fmt::format("a striping unit of {} bytes; it must be 1 to {}",
                                                  region.unit_bytes, largest_unit_bytes));
    if (region.subfile_count < 1 || region.subfile_count > most_subfiles - subfiles)
      return fail(
          Code::bad_argument,
          fmt::format("{} subfiles in one region; each has 1 or more, and a file at most {}",
                      region.subfile_count, most_subfiles));
    subfiles += region.subfile_count;
    previous = region.begin;
  }
  return {};
}

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? end_of_space.value : sum;
}

}  // namespace

Layout Layout::plain() { return striped(endless_unit_bytes, 1); }

Layout Layout::striped(std::uint64_t unit_bytes, int subfile_count) {
  Layout layout;
  layout.add({{0}, unit_bytes, subfile_count}, end_of_space);
  return layout;
}

Result<Layout> Layout::make(std::span<const RegionSpec> regions) {
  SHIMA_TRY(check(regions));
  Layout layout;
  for (std::size_t i = 0; i < regions.size(); ++i)
    layout.add(regions[i], i + 1 < regions.size() ? regions[i + 1].begin : end_of_space);
  return layout;
}

void Layout::add(const RegionSpec& spec, FileOffset end) {
  regions_.push_back(
      {{spec.begin, end}, as_signed(spec.unit_bytes), subfile_count_, spec.subfile_count});
  subfile_count_ += spec.subfile_count;
}

const Layout::Region& Layout::region_at(FileOffset offset) const {
  const auto after = std::ranges::upper_bound(
      regions_, offset, {}, [](const Region& region) { return region.range.begin; });
  return after == regions_.begin() ? regions_.front() : *std::prev(after);
}

const Layout::Region& Layout::region_of(int subfile) const {
  return *std::prev(std::ranges::upper_bound(regions_, subfile, {}, &Region::first_subfile));
}

Extent Layout::locate(FileOffset offset, std::uint64_t len_bytes) const {
  const Region& region = region_at(offset);
  const std::int64_t at = offset - region.range.begin;
  // A plain file is one block; divisions cost as much as the rest of this function.
  const bool in_first_block = at < region.unit_bytes;
  const std::int64_t block = in_first_block ? 0 : at / region.unit_bytes;
  const std::int64_t within = in_first_block ? at : at % region.unit_bytes;
  const std::int64_t left = std::min(region.unit_bytes - within, region.range.end - offset);
  const std::uint64_t len = std::min(len_bytes, as_unsigned(left));
  if (in_first_block) return {region.first_subfile, TargetOffset{within}, len};
  return {region.first_subfile + static_cast<int>(block % region.subfile_count),
          TargetOffset{block / region.subfile_count * region.unit_bytes + within}, len};
}

FileRange Layout::run_at(int subfile, TargetOffset at) const {
  const Region& region = region_of(subfile);
  const std::int64_t round = at.value / region.unit_bytes;
  const std::int64_t within = at.value % region.unit_bytes;
  const std::int64_t block = round * region.subfile_count + (subfile - region.first_subfile);
  const FileOffset begin = region.range.begin + (block * region.unit_bytes + within);
  const FileOffset end{saturating_sum(begin.value, region.unit_bytes - within)};
  return {begin, std::min(end, region.range.end)};
}

TargetOffset Layout::below(int subfile, FileOffset end) const {
  const Region& region = region_of(subfile);
  if (end <= region.range.begin) return {0};
  const std::int64_t len = std::min(end, region.range.end) - region.range.begin;
  const std::int64_t block = len / region.unit_bytes;
  const std::int64_t position = subfile - region.first_subfile;
  const std::int64_t rounds = block / region.subfile_count;
  const std::int64_t at = block % region.subfile_count;
  const std::int64_t last = at > position    ? region.unit_bytes
                            : at == position ? len % region.unit_bytes
                                             : 0;
  return {rounds * region.unit_bytes + last};
}

std::uint64_t Layout::granule_bytes() const {
  std::uint64_t granule = 0;
  for (const Region& region : regions_)
    granule = std::gcd(std::gcd(granule, as_unsigned(region.unit_bytes)),
                       as_unsigned(region.range.begin.value));
  return granule;
}

FileOffset Layout::end_of_file(std::span<const std::uint64_t> subfile_sizes) const {
  FileOffset end{0};
  for (int i = 0; i < subfile_count_; ++i) {
    const std::uint64_t size =
        std::min(subfile_sizes[static_cast<std::size_t>(i)], as_unsigned(capacity(i).value));
    if (size > 0) end = std::max(end, run_at(i, TargetOffset{as_signed(size) - 1}).begin + 1);
  }
  return end;
}

namespace {

// Where the first part ends, and the size of each further one.
struct Cuts {
  std::int64_t first_end = 0;
  std::int64_t step = 0;
};

Cuts cuts_of(TargetRange range, int count, std::uint64_t alignment_bytes) {
  const std::int64_t align = as_signed(std::max<std::uint64_t>(alignment_bytes, 1));
  const auto aligned = [align](std::int64_t bytes) { return (bytes + align - 1) / align * align; };
  const std::int64_t share = (range.end - range.begin + count - 1) / count;
  return {aligned(range.begin.value + share), aligned(share)};
}

}  // namespace

TargetRange cut_range(TargetRange range, int count, std::uint64_t alignment_bytes, int turn) {
  if (range.empty()) return {range.begin, range.begin};
  const Cuts cuts = cuts_of(range, count, alignment_bytes);
  const auto boundary = [&](int before) {
    if (before == 0) return range.begin;
    if (before == count) return range.end;
    return std::min(range.end, TargetOffset{cuts.first_end + (before - 1) * cuts.step});
  };
  return {boundary(turn), boundary(turn + 1)};
}

int cut_containing(TargetRange range, int count, std::uint64_t alignment_bytes, TargetOffset at) {
  const Cuts cuts = cuts_of(range, count, alignment_bytes);
  if (at.value < cuts.first_end) return 0;
  return static_cast<int>(
      std::min<std::int64_t>(1 + (at.value - cuts.first_end) / cuts.step, count - 1));
}

}  // namespace shima
