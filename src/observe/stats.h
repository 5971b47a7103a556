// The statistics of a closed file, for `shima run --stats` and anybody who reads JSON lines.
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
  std::vector<SubfileStats> subfiles = {};
};

// Whether SHIMA_STATS names a file to append to.
[[nodiscard]] bool stats_wanted();

// Appends one line of JSON to that file, in one write.
void append_stats(const FileStats& stats);

// What a user could do better, in one sentence each; pure.
[[nodiscard]] std::vector<std::string> advice_for(const FileStats& stats);

}  // namespace shima
