// Checks the targets: which file each part belongs to.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>

#include "store/check/check_parts.h"
#include "store/striped/intents.h"
#include "store/striped/master_store.h"
#include "store/target/own_directory.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

// One part and the target that holds it.
struct Found {
  const Target* target;
  std::string name;
};

// All parts of one id, and the text of their copies.
struct Family {
  std::vector<Found> parts;
  std::unique_ptr<MasterCopy> copy;  // null: none can be read
};

bool is_draft(std::string_view name) {
  if (!is_draft_name(name)) return false;
  const std::string goal = goal_of_draft(name);
  return is_part_name(goal) || goal == target_marker;
}

class TargetsCheck {
 public:
  TargetsCheck(CheckState& state, const std::function<bool(const std::string&)>& inside)
      : state_(state), inside_(inside) {}

  void run() {
    open_all();
    for (const auto& target : targets_) survey(*target);
    std::map<std::string, std::vector<const Family*>> claims;  // of files that are not master files
    for (const auto& [id, family] : families_) {
      if (const auto master = state_.masters.find(id); master != state_.masters.end())
        check_places(master->second, family);
      if (state_.live_ids.contains(id)) continue;
      if (claims_plain_file(family)) {
        claims[family.copy->path].push_back(&family);
      } else {
        check_orphan(id, family);
      }
    }
    for (const auto& [path, families] : claims) check_overwritten(path, families);
  }

 private:
  void open_all() {
    const auto places = configured_targets();
    if (!places) {
      state_.add(Problem::missing_target, state_.request->path, places.error().what,
                 "correct the list of targets");
    } else {
      for (const TargetPlace& place : *places) open(place.name, state_.request->path);
    }
    for (const std::string& directory : state_.directories)
      if (is_directory_at(own_directory_of(directory)))
        open(std::string(beside_target), directory + "/any");
  }

  void open(const std::string& name, const std::string& path) {
    auto target = Target::open(name, path, Target::Purpose::use);
    // A directory that was never used is not a target yet; the check of a file that needs it
    // reports that.
    if (target) targets_.push_back(std::make_unique<Target>(*std::move(target)));
  }

  void survey(const Target& target) {
    const auto names = target.files().names();
    if (!names) return;
    for (const std::string& name : *names) {
      if (is_draft(name)) check_draft(target, name);
      if (!is_part_name(name)) continue;
      Family& family = families_[name.substr(0, file_id_digits)];
      family.parts.push_back({&target, name});
      if (!name.ends_with(".master")) continue;
      auto copy = read_copy(target, {name.substr(0, file_id_digits)});
      if (copy && !family.copy) family.copy = std::make_unique<MasterCopy>(*std::move(copy));
    }
  }

  void check_draft(const Target& target, const std::string& name) {
    if (target.files().is_being_written(name)) return;
    Finding& finding = state_.add(Problem::leftover_draft, target.directory() + "/" + name,
                                  "a killed process has left this draft", "shima fsck --repair");
    finding.repairable = true;
    finding.repaired = state_.request->repair && target.files().remove(name);
  }

  // Subfiles on targets or with indexes that the layout of a valid file does not have.
  void check_places(const MasterFile& master, const Family& family) {
    const std::vector<std::string> names = master.targets();
    for (const Found& part : family.parts) {
      const auto index = subfile_index(part.name);
      if (!index) continue;
      const bool known = *index >= 0 && *index < std::ssize(names);
      if (known && names[static_cast<std::size_t>(*index)] == part.target->name()) continue;
      state_.add(Problem::foreign_subfile, part.target->directory() + "/" + part.name,
                 known ? fmt::format("subfile {} belongs on target {}, not on {}", *index,
                                     names[static_cast<std::size_t>(*index)], part.target->name())
                       : fmt::format("the file with this id has only {} subfiles", names.size()),
                 "move it to where it belongs, or remove it");
    }
  }

  // A file without data needs no recovery, and a killed create leaves just that.
  bool claims_plain_file(const Family& family) const {
    return family.copy && !family.copy->master.intent &&
           state_.plain_files.contains(family.copy->path) &&
           std::ranges::any_of(family.parts, [](const Found& part) {
             if (!subfile_index(part.name)) return false;
             const auto facts = part.target->files().examine(part.name);
             return facts && facts->st_size > 0;
           });
  }

  // --- orphans

  // Whether the copy names an existing file, outside the requested paths, that has these parts.
  static bool lives_elsewhere(const std::string& id, const Family& family) {
    if (!family.copy) return false;
    const auto there = read_master(family.copy->path);
    if (!there) return true;  // unreadable: assume that it exists
    return *there && (*there)->id.hex == id;
  }

  // Parts without a copy can only belong to a file near their directory.
  bool asked_for(const Family& family) const {
    if (family.copy) return inside_(family.copy->path);
    return std::ranges::any_of(family.parts, [&](const Found& part) {
      const std::filesystem::path directory(part.target->directory());
      return part.target->name() == beside_target && inside_(directory.string());
    });
  }

  void check_orphan(const std::string& id, const Family& family) {
    if (!asked_for(family) || lives_elsewhere(id, family)) return;
    const Found& first = family.parts.front();
    Finding& finding = state_.add(
        Problem::orphan, first.target->directory() + "/" + first.name,
        fmt::format("{} part{} of a file that does not exist{}", family.parts.size(),
                    family.parts.size() == 1 ? "" : "s",
                    family.copy ? "; it was " + family.copy->path : std::string()),
        "if that file was moved without shima mv, check it at its new path; else --remove-orphans "
        "removes them");
    finding.repairable = true;
    if (state_.request->remove_orphans) finding.repaired = remove_orphan(id, family);
  }

  static bool remove_orphan(const std::string& id, const Family& family) {
    std::optional<DirectoryLock> lock;
    if (family.copy) {
      auto taken = DirectoryLock::take(family.copy->path, DirectoryLock::IfUnused::leave);
      if (!taken) return false;
      lock.emplace(*std::move(taken));
      if (lives_elsewhere(id, family)) return false;
    }
    bool all = true;
    for (const Found& part : family.parts)
      all = part.target->files().remove(part.name).has_value() && all;
    return all;
  }

  // --- overwritten

  static bool is_complete(const Family& family) {
    const MasterFile& master = family.copy->master;
    const std::vector<std::string> names = master.targets();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = subfile_name(master.id, static_cast<int>(i));
      if (!std::ranges::any_of(family.parts, [&](const Found& part) {
            return part.name == name && part.target->name() == names[i];
          }))
        return false;
    }
    return true;
  }

  void check_overwritten(const std::string& path, const std::vector<const Family*>& families) {
    std::erase_if(state_.report.findings, [&](const Finding& finding) {
      return finding.problem == Problem::damaged_master && finding.path == path;
    });
    const bool one = families.size() == 1 && is_complete(*families.front());
    Finding& finding = state_.add(
        Problem::overwritten_master, path,
        one ? "a striped file was overwritten by another file; all of its bytes are on the "
              "targets"
            : fmt::format("{} striped file{} overwritten by another file here, and not one "
                          "of them alone has all its subfiles",
                          families.size(), families.size() == 1 ? " was" : "s were"),
        one ? "shima fsck --repair" : "restore it from a backup");
    finding.repairable = one;
    if (!one || !state_.request->repair) return;
    const Status repaired = rebuild(path, *families.front()->copy, finding);
    finding.repaired = repaired.has_value();
    if (!repaired) finding.what += ": " + describe(repaired.error());
    if (repaired) check_file(state_, path);
  }

  // Keeps the file that overwrote the striped file under another name.
  static Status rebuild(const std::string& path, const MasterCopy& copy, Finding& finding) {
    const MasterFile& master = copy.master;
    SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
    if (const auto now = read_master(path); now && *now) return {};
    SHIMA_TRY_ASSIGN(const struct stat facts, tree_at(path).examine(path, FileTree::Links::follow));
    if (facts.st_uid != copy.owner)
      return fail(Code::access_denied,
                  fmt::format("the file belongs to user {}, the subfiles to user {}", facts.st_uid,
                              copy.owner),
                  EACCES);
    if (facts.st_size > 0) {
      const std::string saved = fmt::format("{}.overwritten-{}", path, master.id.hex.substr(0, 8));
      SHIMA_TRY(tree_at(path).link(path, saved));
      finding.what += fmt::format("; the file that overwrote it is saved as {}", saved);
    }
    return put_master_over(path, master);
  }

  CheckState& state_;
  const std::function<bool(const std::string&)>& inside_;
  std::vector<std::unique_ptr<Target>> targets_;
  std::map<std::string, Family> families_;
};

}  // namespace

void check_targets(CheckState& state, const std::function<bool(const std::string&)>& inside) {
  TargetsCheck(state, inside).run();
}

}  // namespace shima
