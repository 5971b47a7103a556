// cp, restripe.
#include "tool/files/copying.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "file/hints/directory_default.h"
#include "file/striping.h"
#include "store/striped/logical_file.h"
#include "store/striped/master_store.h"
#include "store/striped/restripe.h"
#include "store/target/directory_lock.h"
#include "store/target/paths.h"
#include "tool/common/print_failure.h"
#include "tool/files/file_commands.h"

namespace shima::tool {
namespace {

namespace fs = std::filesystem;

Outcome<void> check_stripe_of_copy(const CopyOptions& options, const std::string& to) {
  if (!options.stripe.given() || !exists_at(to)) return {};
  return refuse(to, "it exists, and keeps its own layout",
                "remove it first, or use `shima restripe`");
}

// Creates the destination if it does not exist.
Status make_goal(const CopyOptions& options, const Hints& given, const std::string& to,
                 unsigned permissions) {
  if (exists_at(to) || options.plain) return {};
  Hints hints = with_directory_default(given, to);
  if (!options.stripe.given() && !wants_striping(hints)) return {};
  const auto filled = with_some_targets(hints);
  if (!filled) return fail(Code::bad_argument, filled.error().rule);
  SHIMA_TRY_ASSIGN(auto regions, regions_for(*filled));
  return create_striped({.path = to, .regions = std::move(regions), .permissions = permissions});
}

std::unexpected<Error> are_same(const std::string& from, const std::string& to) {
  return fail(Code::bad_argument, fmt::format("{} and {} are the same file", from, to));
}

Status copy_file(const CopyOptions& options, const Hints& hints, const std::string& from,
                 const std::string& to) {
  SHIMA_TRY_ASSIGN(const struct stat facts, tree_at(from).examine(from, FileTree::Links::follow));
  // Other kinds have no size that marks their end, and reading them may block until a writer comes.
  if (!S_ISDIR(facts.st_mode) && !S_ISREG(facts.st_mode))
    return fail(Code::bad_argument, from + " is not a regular file");
  if (are_same_file(from, to)) return are_same(from, to);
  SHIMA_TRY_ASSIGN(auto source, LogicalFile::open({.path = from, .read = true}));
  SHIMA_TRY(make_goal(options, hints, to, facts.st_mode & 0777U));
  SHIMA_TRY_ASSIGN(auto goal, LogicalFile::open({.path = to,
                                                 .read = true,
                                                 .write = true,
                                                 .create = true,
                                                 .permissions = facts.st_mode & 0777U}));
  // A copy of a master file by cp(1) names the same subfiles.
  SHIMA_TRY_ASSIGN(const bool same, source.shares_subfiles_with(goal));
  if (same) return are_same(from, to);
  SHIMA_TRY(goal.truncate(FileOffset{0}));
  SHIMA_TRY_ASSIGN(const FileOffset end, source.size());
  Progress progress("copying " + from);
  SHIMA_TRY(copy_data(source, goal, {{0}, end}, drawn_by(progress)));
  SHIMA_TRY(goal.truncate(end));
  return goal.close();
}

Status abandon(const std::string& link) {
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(const auto master, read_master(path));
  if (!master) return fail(Code::bad_argument, path + " is not a striped file");
  return drop_restripe(*master, path);
}

// Properties that the options do not set stay as they are.
Result<std::vector<StripedRegion>> goal_regions(const std::string& path, const Hints& given) {
  SHIMA_TRY_ASSIGN(const auto master, read_settled_master(path));
  if (!master)
    return fail(Code::bad_argument,
                path + " is not a striped file; create one from a plain file with `shima cp`");
  Hints hints = given;
  if (hints.shima_regions.empty() && hints.striping_unit == 0)
    hints.striping_unit = master->regions.back().unit_bytes;
  const auto filled = with_some_targets(hints);
  if (!filled) return fail(Code::bad_argument, filled.error().rule);
  return regions_for(*filled);
}

}  // namespace

Outcome<Pairs> pair_up(const std::vector<std::string>& paths, const std::string& command) {
  if (paths.size() < 2)
    return refuse(
        "shima " + command, "it needs at least two names",
        fmt::format("write `shima {} FROM TO`, or `shima {} FROM... DIRECTORY`", command, command));
  const fs::path last(paths.back());
  const auto name_of = [](const fs::path& path) {  // also of "directory/"
    return path.has_filename() ? path.filename() : path.parent_path().filename();
  };
  const bool into = is_directory_at(paths.back());
  if (!into && paths.size() > 2)
    return refuse(paths.back(), "it is not a directory, but there are several source files",
                  "name a directory last");
  Pairs pairs;
  for (std::size_t i = 0; i + 1 < paths.size(); ++i)
    pairs.emplace_back(paths[i], into ? (last / name_of(paths[i])).string() : paths.back());
  return pairs;
}

CopyProgress drawn_by(Progress& progress) {
  return [&progress](FileOffset done, FileOffset end) -> Status {
    progress.show(as_unsigned(done.value), as_unsigned(end.value));
    return {};
  };
}

Outcome<int> copy_files(const CopyOptions& options) {
  auto pairs = pair_up(options.paths, "cp");
  if (!pairs) return std::unexpected(pairs.error());
  const auto hints = stripe_hints(options.stripe);
  if (!hints) return std::unexpected(hints.error());
  bool good = true;
  for (const auto& [from, to] : *pairs) {
    if (auto fits = check_stripe_of_copy(options, to); !fits) {
      if (pairs->size() == 1) return std::unexpected(fits.error());
      complain(fits.error());
      good = false;
      continue;
    }
    good = succeeded(from, copy_file(options, *hints, from, to)) && good;
  }
  return good ? 0 : exit_failed;
}

Outcome<int> restripe_files(const RestripeOptions& options) {
  const auto hints = stripe_hints(options.stripe);
  if (!hints) return std::unexpected(hints.error());
  if (!options.abandon && !options.stripe.given())
    return refuse("shima restripe", "no new layout is given",
                  "write for example `shima restripe --stripe unit=4M,targets=8 FILE`");
  bool good = true;
  for (const std::string& path : options.files) {
    if (options.abandon) {
      good = succeeded(path, abandon(path)) && good;
      continue;
    }
    const auto regions = goal_regions(path, *hints);
    if (!regions) {
      good = succeeded(path, std::unexpected(regions.error()));
      continue;
    }
    Progress progress("restriping " + path);
    good = succeeded(path, restripe({path, *regions}, drawn_by(progress))) && good;
  }
  return good ? 0 : exit_failed;
}

}  // namespace shima::tool
