// Whether runs are so many, and lie so close together, that writing them through a mapping of the
// file is expected to be faster than a call for each (mapped_write.h).
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shima {

// `Run`: of a subfile or of a logical file.
template <class Run>
[[nodiscard]] auto end_of(const Run& run) {
  return run.begin + as_signed(run.len_bytes);
}

// `span_bytes`: from the begin of the first to the end of the last.
[[nodiscard]] inline bool lie_close(std::uint64_t run_count, std::uint64_t span_bytes) {
  constexpr std::uint64_t few_runs = 8;
  constexpr std::uint64_t close_pitch_bytes = 1024;  // a new page costs as much as several calls
  return run_count >= few_runs && span_bytes / run_count <= close_pitch_bytes;
}

// Of runs in the order of the file; false for others.
template <class Run>
[[nodiscard]] bool lie_close(const std::vector<Run>& runs) {
  return !runs.empty() &&
         lie_close(runs.size(), as_unsigned(end_of(runs.back()) - runs.front().begin));
}

}  // namespace shima
