// Looking for what is wrong with striped files, and repairing what can be repaired without
// guessing.
//
// Two surveys are held against each other: the master files found by name, and the parts found on
// the targets. A part whose master file is not where its copy says belongs to a file that was
// overwritten (then something else has the name, and the copy says what the master file said) or to
// none (an orphan). Reads everything without locks: where files are being made or renamed meanwhile
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
  damaged_master,        // it looks like a master file, and is none
  overwritten_master,    // something else has the name of a file whose parts are all there
  unfinished_operation,  // an intent
  unfinished_restripe,
  missing_target,  // not configured, not mounted, not the one that it should be
  missing_subfile,
  foreign_subfile,    // no regular file, somebody else's, or not where the layout has it
  oversized_subfile,  // longer than its share of the layout
  exposed_subfile,    // more open to others than the master file
  short_subfile,      // ends before the logical file does
  second_master,      // a copy of a master file, or another name for it
  stale_copy,         // of a master file: missing, torn, or with another path
  leftover_draft,     // of a killed process
  orphan,             // a part of no file
  unreadable,         // could not be examined
};
[[nodiscard]] std::string_view name_of(Problem problem);

struct Finding {
  Problem problem = Problem::unreadable;
  std::string path;  // of the file that it is about
  std::string what;
  std::string advice;       // what to do where it is not repaired
  bool repairable = false;  // by repair
  bool repaired = false;
  // Nothing that must be wrong: a subfile that ends early is an ordinary sparse file, or one that
  // has lost its end.
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
  std::uint64_t files = 0;  // striped ones
};

[[nodiscard]] Result<CheckReport> check_files(const CheckRequest& request);

}  // namespace shima
