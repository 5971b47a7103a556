#include "store/striped/belonging.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "store/striped/parts.h"
#include "store/target/own_directory.h"
#include "store/target/paths.h"

namespace shima {
namespace {

// True also if the directory is reached by two paths.
bool is_same_name(const std::string& a, const std::string& b) {
  if (a == b) return true;
  return std::filesystem::path(a).filename() == std::filesystem::path(b).filename() &&
         are_same_file(directory_of_path(a), directory_of_path(b));
}

bool stands_at(const FileId& id, const std::string& path) {
  const auto facts = tree_at(path).examine(path, FileTree::Links::keep);
  if (!facts || !S_ISREG(facts->st_mode)) return false;
  const auto there = read_master(path);
  return there && *there && (*there)->id == id;
}

// Whether a file at `path` would have its parts in this directory as well.
bool shares(const Target& target, const std::string& path) {
  if (target.name() != beside_target) return true;
  const std::string directory = own_directory_of(directory_of_path(path));
  const auto ours = target.facts();
  const auto theirs = tree_at(directory).examine(directory, FileTree::Links::follow);
  return ours && theirs && are_same_file(*ours, *theirs);
}

// The evidence of one target's copy of the master file about the parts on that target.
class Voucher {
 public:
  Voucher(const MasterFile& master, const Target& target, const Result<MasterCopy>& copy)
      : master_(master), target_(target) {
    if (copy) copy_ = *copy;
  }

  [[nodiscard]] const Target& target() const { return target_; }
  [[nodiscard]] std::string path() const { return copy_ ? copy_->path : std::string(); }

  [[nodiscard]] bool names(const std::string& path, uid_t owner) const {
    if (!copy_ || copy_->owner != owner) return false;
    const auto* move = master_.intent ? std::get_if<MoveIntent>(&*master_.intent) : nullptr;
    const bool has_come = move != nullptr && move->to == path && move->from == copy_->path;
    return copy_->path == path || (has_come && !stands_at(master_.id, move->from));
  }

  [[nodiscard]] bool names_another_name(const std::string& path) const {
    return copy_ && !is_same_name(copy_->path, path) && stands_at(master_.id, copy_->path) &&
           shares(target_, copy_->path);
  }

  [[nodiscard]] bool names_another_file(const Claimant& claimant) const {
    if (!copy_ || !names_another_name(claimant.path)) return false;
    const auto there = tree_at(copy_->path).examine(copy_->path, FileTree::Links::keep);
    return there && !are_same_file(*there, claimant.facts);
  }

 private:
  const MasterFile& master_;
  const Target& target_;
  std::optional<MasterCopy> copy_;
};

// An error if it is unknown what a copy says.
Result<std::vector<Voucher>> vouchers_of(const MasterFile& master,
                                         const std::vector<Target>& targets,
                                         const PartsSeen& seen) {
  std::vector<Voucher> vouchers;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Result<MasterCopy>& copy = seen.copies[i];
    if (!copy && copy.error().code == Code::io) return std::unexpected(copy.error());
    vouchers.emplace_back(master, targets[i], copy);
  }
  return vouchers;
}

Status check_owners(const MasterFile& master, const Claimant& claimant,
                    const std::vector<Target>& targets, const std::vector<Voucher>& vouchers,
                    const PartsSeen& seen) {
  const std::vector<Part> parts = parts_of(master, targets);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const Result<struct stat>& facts = seen.facts[i];
    if (!facts && facts.error().code == Code::io) return std::unexpected(facts.error());
    if (!facts || facts->st_uid == claimant.facts.st_uid) continue;
    const auto voucher =
        std::ranges::find(vouchers, part.target, [](const Voucher& one) { return &one.target(); });
    if (voucher->names(claimant.path, facts->st_uid)) continue;
    return fail(Code::access_denied,
                fmt::format("{} belongs to user {}, but its part {} to user {}, and no copy of "
                            "the master file there confirms that they belong together; nothing is "
                            "changed (if the file "
                            "is right, give both to one user by chown)",
                            claimant.path, claimant.facts.st_uid, part.path(), facts->st_uid),
                EACCES);
  }
  return {};
}

}  // namespace

Result<Claimant> claimant_at(const std::string& link, const MasterFile& master) {
  Claimant claimant;
  SHIMA_TRY_ASSIGN(claimant.path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const auto now, read_master(claimant.path, &claimant.facts));
  if (now && now->id == master.id && now->regions == master.regions) return claimant;
  return fail(Code::file_in_use, claimant.path + " was replaced by another file");
}

Status check_belonging(const MasterFile& master, const Claimant& claimant,
                       const std::vector<Target>& targets) {
  SHIMA_TRY_ASSIGN(const PartsSeen seen, look_at_parts(master, targets, Look::parts));
  return check_belonging(master, claimant, targets, seen);
}

Status check_belonging(const MasterFile& master, const Claimant& claimant,
                       const std::vector<Target>& targets, const PartsSeen& seen) {
  SHIMA_TRY_ASSIGN(const std::vector<Voucher> vouchers, vouchers_of(master, targets, seen));
  SHIMA_TRY(check_owners(master, claimant, targets, vouchers, seen));
  for (const Voucher& voucher : vouchers)
    if (voucher.names_another_file(claimant))
      return fail(Code::access_denied,
                  fmt::format("{} names the subfiles of {}, of which it is a copy without data; "
                              "nothing is changed (use that file, or make a real copy by shima cp)",
                              claimant.path, voucher.path()),
                  EACCES);
  return {};
}

Status check_own_parts(const MasterFile& master, const std::string& path,
                       const std::vector<Target>& targets) {
  SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(path, master));
  return check_belonging(master, claimant, targets);
}

bool is_second_master(const MasterFile& master, const std::string& link) {
  const auto targets = find_targets(master.targets(), link);
  return targets && is_second_master(master, link, *targets);
}

bool is_second_master(const MasterFile& master, const std::string& link,
                      const std::vector<Target>& targets) {
  const auto path = real_name_of(link);
  const auto seen = look_at_parts(master, targets, Look::copies);
  if (!path || !seen) return false;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (Voucher(master, targets[i], seen->copies[i]).names_another_name(*path)) return true;
  return false;
}

}  // namespace shima
