#include "lapi/own_memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace shima::lapi {

bool OwnMemory::allows(std::uint64_t address, std::uint64_t len_bytes, Use use) {
  std::uint64_t end = 0;
  if (len_bytes == 0) return true;
  if (__builtin_add_overflow(address, len_bytes, &end)) return false;
  if (is_known(address, end, use)) return true;
  // Without /proc, nothing is known about data.
  return look() ? is_known(address, end, use) : use != Use::execute;
}

bool OwnMemory::is_known(std::uint64_t begin, std::uint64_t end, Use use) {
  for (const Range& range : recent_)
    if (range.begin <= begin && end <= range.end && range.allows(use)) return true;
  auto range = std::ranges::upper_bound(ranges_, begin, {}, &Range::end);
  for (; range != ranges_.end() && range->begin <= begin && range->allows(use); ++range) {
    if (end <= range->end) {
      recent_[std::exchange(oldest_, 1 - oldest_)] = *range;
      return true;
    }
    begin = range->end;
  }
  return false;
}

// proc(5): "begin-end perms ..." for each mapping, in order. False if it cannot be read.
bool OwnMemory::look() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (!maps) return false;
  std::vector<Range> found;
  std::array<char, 4352> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), maps.get()) != nullptr) {
    char* rest = nullptr;
    Range range{.begin = std::strtoull(line.data(), &rest, 16)};
    if (*rest != '-') continue;  // the rest of a long line
    range.end = std::strtoull(rest + 1, &rest, 16);
    if (*rest != ' ') continue;
    range.may_read = rest[1] == 'r';
    range.may_write = rest[1] != '\0' && rest[2] == 'w';
    range.may_execute = rest[1] != '\0' && rest[2] != '\0' && rest[3] == 'x';
    if (found.empty() || !found.back().take(range)) found.push_back(range);
  }
  ranges_ = std::move(found);
  recent_ = {};
  return true;
}

}  // namespace shima::lapi
