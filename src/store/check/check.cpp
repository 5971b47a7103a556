#include "store/check/check.h"

#include <filesystem>
#include <vector>

#include "store/check/check_parts.h"
#include "store/target/own_directory.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

namespace fs = std::filesystem;

// Every file below the directory. Links are not followed: the target of a link has its own name.
// Directories that may not be read are skipped.
void walk(CheckState& state, const std::string& top) {
  std::vector<std::string> pending{top};
  while (!pending.empty()) {
    const std::string directory = std::move(pending.back());
    pending.pop_back();
    state.directories.insert(directory);
    const auto entries = tree_at(directory).entries(directory);
    if (!entries && (directory == top || entries.error().code != Code::access_denied))
      state.add(Problem::unreadable, directory, describe(entries.error()), "examine it by hand");
    if (!entries) continue;
    for (const FileTree::Entry& entry : *entries) {
      const std::string path = (fs::path(directory) / entry.name).string();
      if (S_ISDIR(entry.facts.st_mode) && entry.name != own_directory_name) pending.push_back(path);
      if (!S_ISREG(entry.facts.st_mode)) continue;
      if (state.request->progress) state.request->progress(path);
      check_file(state, path);
    }
  }
}

// One file and its leftover drafts.
void check_one(CheckState& state, const std::string& path, bool there) {
  if (state.request->progress) state.request->progress(path);
  if (there) check_file(state, path);
  const std::string directory = directory_of_path(path);
  state.directories.insert(directory);
  const auto entries = tree_at(directory).entries(directory);
  if (!entries) return;
  for (const FileTree::Entry& entry : *entries)
    if (is_draft_of(entry.name, fs::path(path).filename().string()))
      check_file(state, (fs::path(directory) / entry.name).string());
}

}  // namespace

std::string_view name_of(Problem problem) {
  switch (problem) {
    case Problem::damaged_master:
      return "damaged master file";
    case Problem::overwritten_master:
      return "overwritten master file";
    case Problem::unfinished_operation:
      return "unfinished operation";
    case Problem::unfinished_restripe:
      return "unfinished restripe";
    case Problem::missing_target:
      return "missing target";
    case Problem::missing_subfile:
      return "missing subfile";
    case Problem::foreign_subfile:
      return "foreign subfile";
    case Problem::oversized_subfile:
      return "oversized subfile";
    case Problem::exposed_subfile:
      return "exposed subfile";
    case Problem::short_subfile:
      return "short subfile";
    case Problem::second_master:
      return "second master file";
    case Problem::stale_copy:
      return "stale copy";
    case Problem::leftover_draft:
      return "leftover draft";
    case Problem::orphan:
      return "orphan";
    case Problem::unreadable:
      return "unreadable";
  }
  return "unknown problem";
}

Result<CheckReport> check_files(const CheckRequest& request) {
  CheckState state{&request, {}, {}, {}, {}, {}};
  const bool there = exists_at(request.path);
  // A removed file may have left parts.
  SHIMA_TRY_ASSIGN(const std::string path,
                   there ? real_path_of(request.path) : real_name_of(request.path));
  if (is_directory_at(path)) {
    walk(state, path);
    const std::string below = path == "/" ? path : path + "/";
    check_targets(state, [&](const std::string& other) { return other.starts_with(below); });
  } else {
    check_one(state, path, there);
    check_targets(state, [&](const std::string& other) { return other == path; });
  }
  return std::move(state.report);
}

}  // namespace shima
