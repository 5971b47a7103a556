#include "store/check/check.h"

#include <filesystem>

#include "store/check/check_parts.h"
#include "store/target/own_directory.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

namespace fs = std::filesystem;

// Every file below the directory. Links are not followed: the target of a link has its own name.
void walk(CheckState& state, const std::string& directory) {
  state.directories.insert(directory);
  std::error_code error;
  fs::recursive_directory_iterator at(directory, fs::directory_options::skip_permission_denied,
                                      error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    const fs::path& path = at->path();
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) {
      if (path.filename() == own_directory_name) {
        at.disable_recursion_pending();
      } else {
        state.directories.insert(path.string());
      }
    } else if (at->symlink_status(ignored).type() == fs::file_type::regular) {
      if (state.request->progress) state.request->progress(path.string());
      check_file(state, path.string());
    }
  }
  if (error) state.add(Problem::unreadable, directory, error.message(), "examine it by hand");
}

// One file and its leftover drafts.
void check_one(CheckState& state, const std::string& path, bool there) {
  if (state.request->progress) state.request->progress(path);
  if (there) check_file(state, path);
  const fs::path directory = fs::path(path).parent_path();
  state.directories.insert(directory.string());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (is_draft_of(name, fs::path(path).filename().string()))
      check_file(state, entry.path().string());
  }
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
  std::error_code error;
  const bool there = fs::exists(request.path, error);
  // A removed file may have left parts.
  SHIMA_TRY_ASSIGN(const std::string path,
                   there ? real_path_of(request.path) : real_name_of(request.path));
  if (fs::is_directory(path, error)) {
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
