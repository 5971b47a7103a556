#include "independent/read_ahead.h"

#include <algorithm>

namespace shima {
namespace {

constexpr std::int64_t subfile_ahead_bytes = std::int64_t{2} << 20;
constexpr std::int64_t most_ahead_bytes = std::int64_t{32} << 20;
constexpr std::int64_t ahead_pieces = 32;
constexpr std::int64_t most_stride_bytes = std::int64_t{1} << 30;
constexpr std::int64_t cached_windows = 16;  // skipped after a window that was cached

}  // namespace

// Requests one window at a time, each when half of the previous one has been read.
void ReadAhead::extend(FileOffset begin, std::uint64_t len_bytes, std::int64_t stride_bytes) {
  if (stride_bytes > most_stride_bytes) return;
  const bool in_sequence = stride_bytes == as_signed(len_bytes);
  const std::int64_t window =
      in_sequence
          ? std::max(std::min(subfile_ahead_bytes * subfiles_, most_ahead_bytes), 2 * stride_bytes)
          : ahead_pieces * stride_bytes;
  const std::int64_t next = begin.value + stride_bytes;
  std::int64_t front = front_.load(std::memory_order_relaxed);
  const bool of_this_series = front >= next && front <= next + cached_windows * window &&
                              (front - next) % stride_bytes == 0;
  if (!of_this_series) front = next;
  if (front - next > window / 2) return;
  const std::int64_t end =
      in_sequence ? next + window : front + (next + window - front) / stride_bytes * stride_bytes;
  const FileOffset last{end - stride_bytes};
  if (file_.cached(FileOffset{front}) && file_.cached(last)) {
    front_.store(front + cached_windows * window, std::memory_order_relaxed);
    return;
  }
  ask_for({FileOffset{front}, FileOffset{end}}, len_bytes, stride_bytes);
  front_.store(end, std::memory_order_relaxed);
}

void ReadAhead::ask_for(FileRange range, std::uint64_t len_bytes, std::int64_t stride_bytes) {
  if (stride_bytes == as_signed(len_bytes)) return file_.will_need(range);
  for (FileOffset at = range.begin; at < range.end; at = at + stride_bytes)
    file_.will_need({at, at + as_signed(len_bytes)});
}

}  // namespace shima
