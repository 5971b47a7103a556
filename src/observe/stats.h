// The statistics of a closed file, as a line of JSON for `shima run --stats` and other readers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "observe/counters.h"
#include "observe/subfile_tally.h"

namespace shima {

struct SubfileStats {
  std::string target;  // empty for a plain file
  SubfileTally tally;  // over all members
};

struct FileStats {
  std::string path;
  int member_count = 0;
  Counters sum = {};  // over all members
  std::vector<std::pair<std::string, std::string>> hints = {};
  std::vector<std::string> reasons = {};  // names of sum.decided
  std::vector<SubfileStats> subfiles = {};
};

// Whether SHIMA_STATS names a file for the statistics.
[[nodiscard]] bool stats_wanted();

// Appends one line of JSON to that file, in one write.
void append_stats(const FileStats& stats);

// Advice to the user, one sentence each. Pure.
[[nodiscard]] std::vector<std::string> advice_for(const FileStats& stats);

}  // namespace shima
