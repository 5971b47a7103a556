// Checks one name: its master file, and the parts that the master file names.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "store/check/check_parts.h"
#include "store/striped/belonging.h"
#include "store/striped/intents.h"
#include "store/striped/master_store.h"
#include "store/striped/restripe.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

constexpr mode_t others_bits = 0077;

const char* const from_backup = "restore it from a backup, or remove the file";

std::string word_for(const Intent& intent) {
  constexpr std::array<const char*, 4> words{"truncate", "removal", "replacement", "rename"};
  return words[intent.index()];
}

// --- the parts ----------------------------------------------------------------------------------

class FileCheck {
 public:
  FileCheck(CheckState& state, const std::string& path, const MasterFile& master,
            const std::vector<Target>& targets)
      : state_(state), path_(path), master_(master), targets_(targets) {
    facts_ = tree_at(path).examine(path, FileTree::Links::follow).value_or(facts_);
    if (const Status belongs = check_own_parts(master, path, targets); !belongs)
      foreign_ = belongs.error().what;
  }

  void run() {
    const auto layout = layout_of(master_);
    if (!layout) return;
    const auto parts = parts_of(master_, targets_);
    std::vector<std::uint64_t> sizes;
    for (int i = 0; i < layout->subfile_count(); ++i)
      sizes.push_back(check_subfile(parts[static_cast<std::size_t>(i)], *layout, i));
    const FileOffset end = layout->end_of_file(sizes);
    for (int i = 0; i < layout->subfile_count(); ++i)
      note_if_short(i, sizes[static_cast<std::size_t>(i)], layout->below(i, end));
    check_copies();
    check_restripe();
  }

 private:
  std::uint64_t check_subfile(const Part& part, const Layout& layout, int index) {
    const auto found = part.target->files().examine(part.name);
    if (!found) {
      note_missing(part, layout, index, found.error());
      return 0;
    }
    const struct stat& facts = *found;
    if (!S_ISREG(facts.st_mode) || (facts.st_uid != facts_.st_uid && !foreign_.empty())) {
      state_.add(Problem::foreign_subfile, path_,
                 fmt::format("{} is {}", part.path(),
                             S_ISREG(facts.st_mode) ? "another user's file" : "not a regular file"),
                 "find out which process put it there");
      return 0;
    }
    check_mode(part, facts);
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (size > as_unsigned(layout.capacity(index).value))
      state_.add(
          Problem::oversized_subfile, path_,
          fmt::format("{} has {} bytes, of which the layout knows {}", part.path(), size,
                      layout.capacity(index).value),
          "the bytes beyond them are not read; save the subfile elsewhere if they matter, and "
          "truncate it");
    return size;
  }

  void note_missing(const Part& part, const Layout& layout, int index, const Error& why) {
    const bool is_missing = why.code != Code::io;
    state_.add(Problem::missing_subfile, path_,
               is_missing ? fmt::format("subfile {} of {} is missing on target {} ({})", index,
                                        layout.subfile_count(), part.target->name(), part.path())
                          : fmt::format("subfile {} of {} cannot be examined: {}", index,
                                        layout.subfile_count(), describe(why)),
               is_missing ? from_backup : "correct the cause, and check again");
    missing_ = true;
  }

  void check_mode(const Part& part, const struct stat& facts) {
    const mode_t more = facts.st_mode & ~facts_.st_mode & others_bits;
    if (more == 0 || !foreign_.empty()) return;
    Finding& finding =
        state_.add(Problem::exposed_subfile, path_,
                   fmt::format("{} has permissions {:03o}, the file {:03o}", part.path(),
                               facts.st_mode & 0777U, facts_.st_mode & 0777U),
                   "shima fsck --repair");
    finding.repairable = true;
    finding.repaired =
        state_.request->repair &&
        part.target->files().set_mode(part.name, facts.st_mode & facts_.st_mode & 0777U);
  }

  void note_if_short(int index, std::uint64_t size, TargetOffset share) {
    if (missing_ || size >= as_unsigned(share.value)) return;
    state_.add(Problem::short_subfile, path_,
               fmt::format("subfile {} ends at {}; up to {} the file reads as zeros there", index,
                           size, share.value),
               "as it should be where nothing was written, or else the end of the subfile is lost");
  }

  void check_copies() {
    if (is_second_master(master_, path_)) {
      state_.add(Problem::second_master, path_,
                 "another file has the same subfiles; this is a copy of its description only",
                 "`shima rm` removes this one alone; `shima cp` makes real copies");
      return;
    }
    if (!foreign_.empty()) {
      state_.add(Problem::foreign_subfile, path_, foreign_,
                 "remove it by rm, or correct the owners");
      return;
    }
    std::vector<std::string> bad;
    for (const Target& target : targets_) {
      const auto copy = read_copy(target, master_.id);
      if (!copy || !is_path_of_file(copy->path) || copy->master != master_)
        bad.push_back(target.name());
    }
    if (bad.empty()) return;
    Finding& finding = state_.add(
        Problem::stale_copy, path_,
        fmt::format("the copies of its master file on {} are missing, torn, or of another path",
                    fmt::join(bad, ", ")),
        "shima fsck --repair");
    finding.repairable = true;
    if (!state_.request->repair) return;
    finding.repaired = write_copies(master_, path_, facts_.st_mode & 0777U, targets_).has_value();
  }

  // The directory of an I/O node has two names on the node's own machine.
  [[nodiscard]] bool is_path_of_file(const std::string& path) const {
    return path == path_ || (is_on_node(path) != is_on_node(path_) && are_same_file(path, path_));
  }

  void check_restripe() {
    const auto found = unfinished_restripe(master_, path_);
    if (!found || !*found) return;
    state_.live_ids.insert((*found)->goal.id.hex);
    state_.add(
        Problem::unfinished_restripe, path_,
        fmt::format("a restripe is unfinished; {} bytes are copied", (*found)->done.value),
        "run `shima restripe` with the same arguments to continue, or with --abandon to give up");
  }

  CheckState& state_;
  const std::string& path_;
  const MasterFile& master_;
  const std::vector<Target>& targets_;
  struct stat facts_{};
  std::string foreign_;  // why the parts belong to another file
  bool missing_ = false;
};

// --- names --------------------------------------------------------------------------------------

std::string beginning_of(const std::string& path, std::size_t most_bytes) {
  return tree_at(path).read_text(path, most_bytes).value_or("?");
}

std::string without_prefix(const std::string& text, const std::string& prefix) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// A draft contains a master file or the beginning of one.
bool is_draft(const std::string& path) {
  if (!is_draft_name(std::filesystem::path(path).filename().string())) return false;
  const std::string head = beginning_of(path, master_magic.size());
  return master_magic.starts_with(head);
}

void check_draft(CheckState& state, const std::string& path) {
  Finding& finding =
      state.add(Problem::leftover_draft, path,
                "a killed process has left this draft of a master file", "shima fsck --repair");
  finding.repairable = true;
  if (!state.request->repair) return;
  // Drafts are written under the directory's lock, so no process is writing this one.
  const auto lock = DirectoryLock::take(path, DirectoryLock::IfUnused::leave);
  finding.repaired = lock && tree_at(path).remove(path);
}

// Returns true if the file still exists.
bool check_intent(CheckState& state, const std::string& path, MasterFile& master) {
  if (!master.intent) return true;
  if (const auto* replaced = std::get_if<ReplaceIntent>(&*master.intent))
    state.live_ids.insert(replaced->from.hex);
  if (const auto* move = std::get_if<MoveIntent>(&*master.intent); move && move->replaced)
    state.live_ids.insert(move->replaced->from.hex);
  Finding& finding =
      state.add(Problem::unfinished_operation, path,
                fmt::format("a {} is unfinished", word_for(*master.intent)),
                "the next open of the file finishes it, and so does shima fsck --repair");
  finding.repairable = true;
  if (state.request->repair) {
    const auto settled = read_settled_master(path);
    finding.repaired = settled.has_value();
    if (!settled) finding.what += ": " + describe(settled.error());
    if (settled) {
      const std::optional<MasterFile>& now = *settled;
      if (!now) return false;
      master = *now;
    }
  }
  master.intent.reset();
  return true;
}

}  // namespace

void check_file(CheckState& state, const std::string& path) {
  if (is_draft(path)) return check_draft(state, path);
  if (is_part_name(std::filesystem::path(path).filename().string())) return;
  auto found = read_master(path);
  if (!found && found.error().code != Code::bad_file) {
    state.add(Problem::unreadable, path, describe(found.error()),
              "run shima fsck as a user who may read it");
    return;
  }
  if (!found || !*found) {
    state.plain_files.insert(path);
    if (!found)
      state.add(Problem::damaged_master, path, without_prefix(found.error().what, path + ": "),
                "no copy of it was found on the targets; if one is on a target that is not "
                "configured here, configure that");
    return;
  }
  MasterFile master = **std::move(found);
  ++state.report.files;
  state.live_ids.insert(master.id.hex);
  if (!check_intent(state, path, master)) return;
  state.masters[master.id.hex] = master;
  const auto targets = open_targets(master.targets(), path, Target::Purpose::use);
  if (!targets) {
    state.add(Problem::missing_target, path, targets.error().what, "configure or mount it");
    return;
  }
  FileCheck(state, path, master, *targets).run();
}

}  // namespace shima
