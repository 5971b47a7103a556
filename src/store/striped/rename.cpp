// Changes the names, permissions and times of files.
//
// A striped file is renamed like a plain one, by rename(2) of its master file, so there is always
// the old name or the new. Further steps surround it: subfiles beside the file get a second name (a
// hard link) in the new directory first and lose the old one last; the copies of the master file
// are updated to the new path; and the subfiles of a replaced file are removed. A MoveIntent in the
// master file records the pending steps.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "store/striped/belonging.h"
#include "store/striped/intents.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// The file that rename(2) would act on: a link is not followed.
Result<std::optional<MasterFile>> read_master_by_name(const std::string& path) {
  const auto facts = tree_at(path).examine(path, FileTree::Links::keep);
  if (!facts || !S_ISREG(facts->st_mode)) return std::nullopt;
  return read_master(path);
}

Result<std::optional<MasterFile>> master_by_name(const std::string& path) {
  SHIMA_TRY_ASSIGN(auto master, read_master_by_name(path));
  if (!master || !master->intent) return master;
  const bool removes = std::holds_alternative<RemoveIntent>(*master->intent);
  SHIMA_TRY(finish_intent(path, *master));
  if (removes) return std::nullopt;
  return master;
}

std::unexpected<Error> not_across(const std::string& from, const std::string& to, int sys_errno) {
  return fail_errno(sys_errno,
                    fmt::format("renaming {} to {}: its subfiles cannot move to another file "
                                "system; copy it with shima cp and remove the old one",
                                from, to));
}

Status link_part(const Part& part, const Target& there, const std::string& from,
                 const std::string& to) {
  const Status linked = part.target->files().link_into(there.files(), part.name);
  if (linked) return {};
  const int why = linked.error().sys_errno;
  if (why == EXDEV || why == EPERM || why == EMLINK) return not_across(from, to, EXDEV);
  if (why != EEXIST) return linked;
  if (is_same_file(*part.target, there, part.name)) return {};  // by an earlier, unfinished call
  return fail_errno(EEXIST, fmt::format("renaming {} to {}: {}/{} exists already; move it away",
                                        from, to, there.directory(), part.name));
}

// Adds second names for the parts beside the file.
Status link_beside(const MasterFile& master, const std::vector<Target>& targets,
                   const std::string& from, const std::string& to) {
  std::optional<Target> there;
  // The existing name may be a link, which would be followed: so use another name in the directory.
  const std::string beside = (std::filesystem::path(to).parent_path() / master.id.hex).string();
  for (const Part& part : parts_of(master, targets)) {
    if (part.target->name() != beside_target) continue;
    if (!there) {
      SHIMA_TRY_ASSIGN(Target made,
                       Target::open(std::string(beside_target), beside, Target::Purpose::create));
      there.emplace(std::move(made));
    }
    SHIMA_TRY(link_part(part, *there, from, to));
  }
  return {};
}

Status system_rename(const std::string& from, const std::string& to) {
  if (is_on_node(from) != is_on_node(to)) return not_across(from, to, EXDEV);
  return tree_at(from).rename(from, to);
}

// rename(2) would detect this too late.
Status check_goal(const std::string& from, const std::string& to) {
  const auto goal = tree_at(to).examine(to, FileTree::Links::keep);
  if (goal && S_ISDIR(goal->st_mode)) return fail_errno(EISDIR, "renaming " + from + " to " + to);
  const std::string directory = directory_of_path(to);
  const std::string old_directory = directory_of_path(from);
  const auto before = tree_at(from).examine(old_directory, FileTree::Links::follow);
  const auto after = tree_at(to).examine(directory, FileTree::Links::follow);
  const bool across = before && after && before->st_dev != after->st_dev;
  if (across || is_on_node(from) != is_on_node(to)) return not_across(from, to, EXDEV);
  return tree_at(to).check_writable(directory);
}

Status rename_striped(MasterFile& master, const std::string& from, const std::string& to,
                      const std::optional<MasterFile>& replaced) {
  SHIMA_TRY(check_goal(from, to));
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master.targets(), from, Target::Purpose::use));
  SHIMA_TRY(check_own_parts(master, from, targets));
  SHIMA_TRY(drop_restripe(master, from));  // it would finish under the old name
  MoveIntent move{from, to, {}};
  if (replaced) {
    SHIMA_TRY_ASSIGN(const auto goal_targets,
                     open_targets(replaced->targets(), to, Target::Purpose::use));
    SHIMA_TRY(check_own_parts(*replaced, to, goal_targets));
    SHIMA_TRY(drop_restripe(*replaced, to));
    move.replaced = ReplaceIntent{replaced->id, replaced->targets()};
  }
  master.intent = move;
  SHIMA_TRY(put_master(from, master));
  Status moved;
  if (std::filesystem::path(from).parent_path() != std::filesystem::path(to).parent_path())
    moved = link_beside(master, targets, from, to);
  if (moved) moved = system_rename(from, to);
  if (moved) moved = tree_at(to).sync_directory_of(to);
  const Status finished = finish_intent(moved ? to : from, master);
  return moved ? finished : moved;
}

// First the copies record that the file is to be removed, so that a plain file under its name is
// never taken for one that overwrote it.
Status rename_over_striped(const std::string& from, const std::string& to, MasterFile& replaced) {
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(replaced.targets(), to, Target::Purpose::use));
  SHIMA_TRY(check_own_parts(replaced, to, targets));
  SHIMA_TRY(drop_restripe(replaced, to));
  replaced.intent = RemoveIntent{};
  SHIMA_TRY(write_copies(replaced, to, 0600, targets));
  const Status moved = system_rename(from, to);
  if (moved) return remove_parts(replaced, targets);
  replaced.intent.reset();
  std::ignore = write_copies(replaced, to, 0600, targets);
  return moved;
}

// A lock for two plain files must not leave a lock file in their directories.
Result<DirectoryLock> lock_names(const std::string& from, const std::string& to) {
  SHIMA_TRY_ASSIGN(const auto source, read_master_by_name(from));
  SHIMA_TRY_ASSIGN(const auto goal, read_master_by_name(to));
  if (source || goal) return DirectoryLock::take_both(from, to);
  return DirectoryLock::take_both_for_plain(from, to);
}

Status set_part_modes(const std::vector<Part>& parts, mode_t mode, bool only_less) {
  for (const Part& part : parts) {
    const auto facts = part.target->files().examine(part.name);
    if (!facts && facts.error().code == Code::io) return std::unexpected(facts.error());
    if (!facts || !S_ISREG(facts->st_mode)) continue;  // fsck reports it
    const mode_t wanted = only_less ? facts->st_mode & mode & 0777U : mode & 0777U;
    SHIMA_TRY(part.target->files().set_mode(part.name, wanted));
  }
  return {};
}

}  // namespace

Status rename_file(const std::string& from_link, const std::string& to_link) {
  const auto source = tree_at(from_link).examine(from_link, FileTree::Links::keep);
  if (!source)
    return fail(source.error().code,
                fmt::format("renaming {} to {}: {}", from_link, to_link, source.error().what),
                source.error().sys_errno);
  if (S_ISDIR(source->st_mode)) return system_rename(from_link, to_link);
  SHIMA_TRY_ASSIGN(const std::string from, real_name_of(from_link));
  SHIMA_TRY_ASSIGN(const std::string to, real_name_of(to_link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, lock_names(from, to));
  SHIMA_TRY_ASSIGN(auto master, master_by_name(from));
  SHIMA_TRY_ASSIGN(auto replaced, master_by_name(to));
  // Two names of one file, or the same name twice: rename(2) does nothing then.
  if (master && replaced && master->id == replaced->id) return {};
  if (replaced && is_second_master(*replaced, to)) replaced.reset();
  if (master) return rename_striped(*master, from, to, replaced);
  if (replaced) return rename_over_striped(from, to, *replaced);
  return system_rename(from, to);
}

Status tell_copies(const std::string& link) {
  SHIMA_TRY_ASSIGN(const std::string path, real_name_of(link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(const auto master, master_by_name(path));
  if (!master) return {};
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master->targets(), path, Target::Purpose::use));
  SHIMA_TRY(check_own_parts(*master, path, targets));
  return write_copies(*master, path, 0600, targets);
}

Status set_permissions(const std::string& link, unsigned wanted) {
  unsigned mode = wanted;
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const auto before, read_master(path));
  if (!before) return tree_at(path).set_mode(path, mode & 07777U);
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(const auto master, read_master(path));
  std::vector<Target> targets;
  std::vector<Target> goal_targets;
  std::vector<Part> parts;
  if (master) {
    SHIMA_TRY_ASSIGN(targets, open_targets(master->targets(), path, Target::Purpose::use));
    SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(path, *master));
    SHIMA_TRY(check_belonging(*master, claimant, targets));
    parts = parts_of(*master, targets);
    SHIMA_TRY_ASSIGN(const auto unfinished, unfinished_restripe(*master, path));
    if (unfinished) {
      SHIMA_TRY_ASSIGN(goal_targets,
                       open_targets(unfinished->goal.targets(), path, Target::Purpose::use));
      SHIMA_TRY(check_belonging(unfinished->goal, claimant, goal_targets));
      std::ranges::copy(parts_of(unfinished->goal, goal_targets), std::back_inserter(parts));
    }
    // A process that cannot read a master file cannot recognise it; its owner always must.
    if (::geteuid() != 0) mode |= S_IRUSR;
  }
  SHIMA_TRY(set_part_modes(parts, mode, true));
  SHIMA_TRY(tree_at(path).set_mode(path, mode & 07777U));
  lock.admit_writers_of(path);
  return set_part_modes(parts, mode, false);
}

Status set_times(const std::string& link, const FileTimes& times) {
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const auto before, read_master(path));
  if (!before) return tree_at(path).set_times(path, times);
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(const auto master, read_master(path));
  if (!master) return fail(Code::no_such_file, path + " is not a striped file any more");
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master->targets(), path, Target::Purpose::use));
  SHIMA_TRY(check_own_parts(*master, path, targets));
  for (const Part& part : parts_of(*master, targets))
    SHIMA_TRY(part.target->files().set_times(part.name, times));
  return tree_at(path).set_times(path, times);
}

}  // namespace shima
