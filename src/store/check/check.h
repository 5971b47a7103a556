// Finds inconsistencies of striped files, and repairs what can be repaired without guessing.
//
// The check compares two surveys: the master files found by name, and the parts found on the
// targets. If the copy beside a part names a path without that master file, the part belongs to a
// file that was overwritten (another file has the name, and the copy holds the text of the master
// file) or to no file (an orphan). The surveys take no locks: if files are created or renamed
// meanwhile, a finding may be out of date. Repairs lock the directory and examine again.
// it may find what is gone a moment later. Repairs lock the directory and look again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace shima {

enum class Problem : std::uint8_t {
  damaged_master,        // begins like a master file, but cannot be decoded
  overwritten_master,    // another file has the name of a file whose parts are all present
  unfinished_operation,  // an intent
  unfinished_restripe,
  missing_target,  // not configured, not mounted, or another target
  missing_subfile,
  foreign_subfile,    // not a regular file, another user's, or not where the layout has it
  oversized_subfile,  // longer than its share of the layout
  exposed_subfile,    // permits others more than the master file
  short_subfile,      // ends before the logical file does
  second_master,      // a copy of a master file, or another name for it
  stale_copy,         // copy of a master file: missing, torn, or with another path
  leftover_draft,     // left by a killed process
  orphan,             // a part of no file
  unreadable,         // could not be examined
};
[[nodiscard]] std::string_view name_of(Problem problem);

struct Finding {
  Problem problem = Problem::unreadable;
  std::string path;  // of the file concerned
  std::string what;
  std::string advice;       // what to do if it is not repaired
  bool repairable = false;  // by repair
  bool repaired = false;
  // Not necessarily an error: a subfile that ends early is an ordinary sparse file, or one that has
  // lost its end.
  [[nodiscard]] bool is_note() const { return problem == Problem::short_subfile; }
};

struct CheckRequest {
  std::string path;  // a file, or a directory with all below it
  bool repair = false;
  bool remove_orphans = false;
  std::function<void(const std::string& path)> progress = {};  // before each file
};
struct CheckReport {
  std::vector<Finding> findings;
  std::uint64_t files = 0;  // striped files
};

[[nodiscard]] Result<CheckReport> check_files(const CheckRequest& request);

}  // namespace shima
