#include "store/striped/intents.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "store/striped/belonging.h"
#include "store/striped/master_store.h"
#include "store/striped/parts.h"
#include "store/striped/restripe.h"
#include "store/target/paths.h"
#include "store/target/target.h"

namespace shima {
namespace {

std::filesystem::path directory_of(const std::string& path) {
  return std::filesystem::path(path).parent_path();
}

Status remove_replaced(const ReplaceIntent& replaced, const Claimant& claimant) {
  const MasterFile before{replaced.from, {{{0}, 1, replaced.targets}}, {}};
  SHIMA_TRY_ASSIGN(const auto targets,
                   open_targets(replaced.targets, claimant.path, Target::Purpose::use));
  SHIMA_TRY(check_belonging(before, claimant, targets));
  return remove_parts(before, targets);
}

// During a move, parts beside the file have a second name in the directory of the other path. That
// name is removed only if both names refer to one file: so no other file can be lost, whatever a
// master file contains.
Status unlink_twins(const MasterFile& master, const std::vector<Target>& targets,
                    const std::string& other_path) {
  const auto there = Target::open(std::string(beside_target), other_path, Target::Purpose::use);
  if (!there) return {};  // never created, or removed with its content
  for (const Part& part : parts_of(master, targets)) {
    if (part.target->name() != beside_target || !is_same_file(*part.target, *there, part.name))
      continue;
    SHIMA_TRY(there->files().remove(part.name));
  }
  return {};
}

Status finish_move(const Claimant& claimant, const MasterFile& master, const MoveIntent& move,
                   const std::vector<Target>& targets) {
  const std::string& path = claimant.path;
  for (const std::string& end : {move.from, move.to})
    if (directory_of(end) != directory_of(path)) SHIMA_TRY(unlink_twins(master, targets, end));
  // At another path it is unknown whether the replaced file was removed; fsck reports leftovers.
  if (move.replaced && path == move.to) SHIMA_TRY(remove_replaced(*move.replaced, claimant));
  MasterFile settled = master;
  settled.intent.reset();
  return write_copies(settled, path, 0600, targets);
}

// The logical size, computed from the existing subfiles.
Result<std::uint64_t> size_of(const MasterFile& master, const PartsSeen& seen) {
  SHIMA_TRY_ASSIGN(const Layout layout, layout_of(master));
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < layout.subfile_count(); ++i) {
    SHIMA_TRY_ASSIGN(const struct stat facts, seen.facts[static_cast<std::size_t>(i)]);
    sizes.push_back(as_unsigned(facts.st_size));
  }
  return as_unsigned(layout.end_of_file(sizes).value);
}

// `intent`: that of the master file, whose parts belong to the claimant.
Status execute_intent(const Intent& intent, const Claimant& claimant, MasterFile& master,
                      const std::vector<Target>& targets) {
  const std::string& path = claimant.path;
  if (const auto* truncate = std::get_if<TruncateIntent>(&intent)) {
    SHIMA_TRY(truncate_subfiles(master, truncate->size_bytes, targets));
  } else if (std::holds_alternative<RemoveIntent>(intent)) {
    SHIMA_TRY(remove_parts(master, targets));
    const Status removed = tree_at(path).remove(path);
    return removed || removed.error().sys_errno == ENOENT ? Status{} : removed;
  } else if (const auto* replaced = std::get_if<ReplaceIntent>(&intent)) {
    SHIMA_TRY(remove_replaced(*replaced, claimant));
  } else if (const auto* move = std::get_if<MoveIntent>(&intent)) {
    SHIMA_TRY(finish_move(claimant, master, *move, targets));
  }
  master.intent.reset();
  return put_master(path, master);
}

}  // namespace

Status put_master(const std::string& path, const MasterFile& master) {
  return tree_at(path).replace_master(path, encode_master(master), FileTree::Replacing::alike);
}

Status put_master_over(const std::string& path, const MasterFile& master) {
  return tree_at(path).replace_master(path, encode_master(master),
                                      FileTree::Replacing::as_far_as_we_may);
}

Status finish_intent(const std::string& path, MasterFile& master) {
  if (!master.intent) return {};
  const Intent intent = *master.intent;
  SHIMA_TRY_ASSIGN(const auto targets, find_targets(master.targets(), path));
  // Any process that opens a file finishes its intent, perhaps with more rights than the writer of
  // the intent.
  SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(path, master));
  SHIMA_TRY(check_belonging(master, claimant, targets));
  return execute_intent(intent, claimant, master, targets);
}

Status carry_out(const std::string& link, const Intent& intent, const FileId* only) {
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  Claimant claimant{path, {}};
  SHIMA_TRY_ASSIGN(auto master, read_master(path, &claimant.facts));
  if (!master) return fail(Code::no_such_file, path + " is not a striped file any more");
  if (only != nullptr && master->id != *only)
    return fail(Code::file_in_use, path + " was replaced by another file");
  if (master->intent) {
    SHIMA_TRY(finish_intent(path, *master));
    SHIMA_TRY_ASSIGN(claimant, claimant_at(path, *master));
  }
  // Start nothing that cannot be finished.
  SHIMA_TRY_ASSIGN(const auto targets, find_targets(master->targets(), path));
  const bool removes = std::holds_alternative<RemoveIntent>(intent);
  SHIMA_TRY_ASSIGN(const PartsSeen seen,
                   look_at_parts(*master, targets, removes ? Look::parts_and_record : Look::parts));
  SHIMA_TRY(check_belonging(*master, claimant, targets, seen));
  if (removes) SHIMA_TRY(drop_restripe(*master, path, targets.front(), seen.record));
  std::uint64_t size_before = 0;
  const bool truncates = std::holds_alternative<TruncateIntent>(intent);
  if (truncates) {
    SHIMA_TRY_ASSIGN(size_before, size_of(*master, seen));
  }
  master->intent = intent;
  SHIMA_TRY(put_master(path, *master));
  const Status finished = execute_intent(intent, claimant, *master, targets);
  if (finished || !truncates) return finished;
  // An impossible size (EFBIG) must not be retried by every process that opens the file.
  master->intent = TruncateIntent{size_before};
  if (put_master(path, *master)) std::ignore = finish_intent(path, *master);
  return finished;
}

}  // namespace shima
