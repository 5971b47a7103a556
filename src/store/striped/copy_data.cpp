#include "store/striped/copy_data.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace shima {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{8} << 20;
constexpr std::uint64_t block_bytes = std::uint64_t{64} << 10;  // the granularity of holes

bool all_zeros(const char* data, std::uint64_t len_bytes) {
  return *data == 0 && std::memcmp(data, data + 1, len_bytes - 1) == 0;
}

// Writes the runs of blocks that contain anything but zeros.
Status write_nonzero(LogicalFile& to, FileOffset at, const char* data, std::uint64_t len_bytes) {
  std::uint64_t run = 0;  // pending bytes before `next`
  for (std::uint64_t next = 0; next <= len_bytes;) {
    const std::uint64_t len = std::min(block_bytes, len_bytes - next);
    if (len > 0 && !all_zeros(data + next, len)) {
      run += len;
      next += len;
      continue;
    }
    const std::uint64_t begin = next - run;
    if (run > 0) SHIMA_TRY(to.write(at + as_signed(begin), data + begin, run));
    if (len == 0) break;
    run = 0;
    next += len;
  }
  return {};
}

}  // namespace

Status copy_data(LogicalFile& from, LogicalFile& to, FileRange range,
                 const CopyProgress& progress) {
  std::vector<char> window(window_bytes);
  for (FileOffset at = range.begin; at < range.end;) {
    SHIMA_TRY_ASSIGN(const auto data, from.next_data(at));
    if (!data || *data >= range.end) break;
    at = *data;
    // Windows are aligned, so that large striping units are read and written whole.
    const FileOffset window_end{(at.value / as_signed(window_bytes) + 1) * as_signed(window_bytes)};
    const FileRange part{at, std::min(window_end, range.end)};
    SHIMA_TRY_ASSIGN(const std::uint64_t found, from.read(at, window.data(), part.len_bytes()));
    SHIMA_TRY(write_nonzero(to, at, window.data(), found));
    if (found < part.len_bytes()) break;  // the source was truncated meanwhile
    at = part.end;
    if (progress) SHIMA_TRY(progress(at, range.end));
  }
  return progress ? progress(range.end, range.end) : Status{};
}

}  // namespace shima
