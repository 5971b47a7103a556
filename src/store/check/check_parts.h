// The halves of a check (see check.h): one master file, and the parts on the targets.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/check/check.h"
#include "store/striped/parts.h"

namespace shima {

// What a check knows so far.
struct CheckState {
  const CheckRequest* request = nullptr;
  CheckReport report;
  std::set<std::string> live_ids;             // named by any master file
  std::map<std::string, MasterFile> masters;  // valid ones, by id
  std::set<std::string> plain_files;          // all but valid master files, by path
  std::set<std::string> directories;

  Finding& add(Problem problem, std::string path, std::string what, std::string advice) {
    return report.findings.emplace_back(
        Finding{problem, std::move(path), std::move(what), std::move(advice)});
  }
};

// Examines the file at `path`, a real path: a master file, a draft, or any other file.
void check_file(CheckState& state, const std::string& path);

// Examines the configured targets and those beside the files. Call after all files were examined.
// `inside`: whether a path is among those requested.
void check_targets(CheckState& state, const std::function<bool(const std::string&)>& inside);

}  // namespace shima
