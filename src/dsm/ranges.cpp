#include "dsm/ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shima::dsm {

Result<Granules> Ranges::allocate(std::uint64_t size_bytes) {
  if (size_bytes == 0)
    return fail(Code::bad_argument, "allocating 0 bytes; the size must be positive");
  const std::uint64_t count = granules_in(size_bytes);
  const auto found =
      std::ranges::find_if(free_, [&](const auto& range) { return range.second >= count; });
  if (found == free_.end())
    return fail(Code::no_memory,
                fmt::format("allocating {} bytes: no free range of the donated memory is as large; "
                            "donate more in dsm_open",
                            size_bytes));
  const Granules taken{found->first, count};
  const std::uint64_t left = found->second - count;
  free_.erase(found);
  if (left > 0) free_.emplace(taken.first + count, left);
  used_.emplace(taken.first, count);
  return taken;
}

Result<Granules> Ranges::release(std::uint64_t offset) {
  const auto found = used_.find(offset / granule_bytes);
  if (offset % granule_bytes != 0 || found == used_.end())
    return fail(
        Code::bad_argument,
        fmt::format("freeing offset {}: dsm_alloc has not returned it, or it has been freed",
                    offset));
  const Granules freed{found->first, found->second};
  used_.erase(found);
  auto at = free_.emplace(freed.first, freed.count).first;
  if (const auto next = std::next(at);
      next != free_.end() && next->first == at->first + at->second) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at != free_.begin())
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
      before->second += at->second;
      free_.erase(at);
    }
  return freed;
}

}  // namespace shima::dsm
