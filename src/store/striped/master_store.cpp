#include "store/striped/master_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "base/log.h"
#include "base/unique_fd.h"
#include "layout/master_file.h"
#include "store/striped/belonging.h"
#include "store/striped/intents.h"
#include "store/striped/parts.h"
#include "store/target/directory_lock.h"
#include "store/target/paths.h"
#include "store/target/target.h"
#include "store/target/text_file.h"

namespace shima {

Status create_striped(const StripedCreate& wanted) {
  StripedCreate request = wanted;
  if (const auto real = real_or_new_path_of(wanted.path)) request.path = *real;
  FileTree& tree = tree_at(request.path);
  MasterFile master{{}, request.regions, {}};
  SHIMA_TRY_ASSIGN(master.id, new_id());
  SHIMA_TRY(layout_of(master));
  if (exists_at(request.path)) {
    if (!request.exclusive) return {};
    return fail_errno(EEXIST, "creating " + request.path);
  }
  SHIMA_TRY_ASSIGN(const auto targets,
                   open_targets(master.targets(), request.path, Target::Purpose::create));
  // Without the lock, fsck would take the new parts for orphans until the master file exists.
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(request.path));
  SHIMA_TRY(make_parts(master, request.path, request.permissions, targets));
  Status status = tree.create_text(request.path, encode_master(master), request.permissions);
  if (status) lock.admit_writers_of(request.path);
  if (status) return {};
  std::ignore = remove_parts(master, targets);
  if (status.error().code == Code::file_exists && !request.exclusive) status = {};
  return status;
}

Result<std::optional<MasterFile>> read_master(const std::string& path, struct stat* found) {
  SHIMA_TRY_ASSIGN(const auto text, tree_at(path).read_master(path));
  if (!text) return std::nullopt;
  auto master = decode_master(text->text);
  if (!master) return fail(master.error().code, path + ": " + master.error().what);
  if (found != nullptr) *found = text->facts;
  return *std::move(master);
}

Result<std::optional<MasterFile>> read_settled_master(const std::string& link, struct stat* facts) {
  SHIMA_TRY_ASSIGN(auto master, read_master(link, facts));
  if (!master || !master->intent) return master;
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(master, read_master(path, facts));  // another process may have finished it
  if (!master || !master->intent) return master;
  const bool removes = std::holds_alternative<RemoveIntent>(*master->intent);
  SHIMA_TRY(finish_intent(path, *master));
  if (removes) return std::nullopt;
  return master;
}

Result<std::optional<MasterFile>> read_openable_master(const std::string& path,
                                                       struct stat* facts) {
  auto settled = read_settled_master(path, facts);
  if (settled) return settled;
  SHIMA_TRY_ASSIGN(auto master, read_master(path, facts));
  const bool only_tidying = master && master->intent &&
                            (std::holds_alternative<ReplaceIntent>(*master->intent) ||
                             std::holds_alternative<MoveIntent>(*master->intent));
  if (!only_tidying) return settled;
  log(LogLevel::info, "{}: an operation remains unfinished: {}", path, describe(settled.error()));
  return master;
}

namespace {

SubfileOpen opening_of(const Part& part, const SubfilesOpen& request) {
  return {.path = part.path(),
          .read = request.read,
          .write = request.write,
          .direct_read = request.direct_read,
          .direct_write = request.direct_write,
          .close_to_open = request.close_to_open};
}

// A special file may block its opener for ever, and has no bytes at an offset.
Status check_regular(std::span<const Part> subfiles, const PartsSeen& seen,
                     const std::string& path) {
  for (std::size_t i = 0; i < subfiles.size(); ++i)
    if (seen.facts[i] && !S_ISREG(seen.facts[i]->st_mode))
      return fail(Code::bad_file,
                  fmt::format("{}: its subfile {} is not a regular file ({}); shima "
                              "fsck reports details",
                              path, i, subfiles[i].path()));
  return {};
}

Result<std::unique_ptr<Subfile>> check_opened(Result<std::unique_ptr<Subfile>> subfile,
                                              const Part& part, std::size_t index,
                                              const Result<struct stat>& facts,
                                              const SubfilesOpen& request) {
  if (!subfile && subfile.error().code == Code::no_such_file)
    return fail(
        Code::bad_file,
        fmt::format("{}: its subfile {} is missing on target {} ({}); shima fsck reports details",
                    request.path, index, part.target->name(), part.target->directory()));
  if (!subfile || !request.write) return subfile;
  // The path may lead to another directory than the one examined.
  SHIMA_TRY_ASSIGN(const FileIdentity opened, (*subfile)->identity());
  if (facts && opened == FileIdentity{facts->st_dev, facts->st_ino}) return subfile;
  return fail(Code::file_in_use, part.path() + " was replaced while it was being opened");
}

}  // namespace

Result<std::vector<std::unique_ptr<Subfile>>> open_subfiles(const MasterFile& master,
                                                            const SubfilesOpen& request,
                                                            const MasterFile& standing) {
  SHIMA_TRY_ASSIGN(const auto targets, find_targets(master.targets(), request.path));
  PartsSeen seen;
  if (request.write) {
    SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(request.path, standing));
    SHIMA_TRY_ASSIGN(seen, look_at_parts(master, targets, Look::parts));
    SHIMA_TRY(check_belonging(master, claimant, targets, seen));
  } else {
    SHIMA_TRY_ASSIGN(seen, look_at_parts(master, targets, Look::subfiles));
  }
  std::vector<Part> parts = parts_of(master, targets);
  parts.resize(master.targets().size());  // the copies come last
  SHIMA_TRY(check_regular(parts, seen, request.path));
  const auto far = ask_together(parts.size(), [&](std::size_t i) {
    return parts[i].target->files().begin_open(parts[i].name, opening_of(parts[i], request));
  });
  std::vector<std::unique_ptr<Subfile>> subfiles;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto opened = far[i]
                      ? far[i]->result()
                      : parts[i].target->files().open(parts[i].name, opening_of(parts[i], request));
    SHIMA_TRY_ASSIGN(auto subfile,
                     check_opened(std::move(opened), parts[i], i, seen.facts[i], request));
    subfiles.push_back(std::move(subfile));
  }
  return subfiles;
}

Status sync_master(const MasterFile& master, const std::string& path) {
  SHIMA_TRY(tree_at(path).sync(path));
  SHIMA_TRY_ASSIGN(const std::string real, real_path_of(path));
  SHIMA_TRY(tree_at(real).sync_directory_of(real));
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master.targets(), real, Target::Purpose::use));
  for (const Target& target : targets) SHIMA_TRY(target.files().sync());
  return {};
}

Status truncate_striped(const std::string& path, std::uint64_t size_bytes, const FileId* only) {
  return carry_out(path, TruncateIntent{size_bytes}, only);
}

namespace {

// Whether this is the name of a striped file, and no second one. A damaged master file is an error:
// removing it alone would hide its subfiles from fsck.
Result<bool> is_name_of_striped(const std::string& path) {
  SHIMA_TRY_ASSIGN(const auto master, read_master(path));
  return master && !is_second_master(*master, path);
}

}  // namespace

Status remove_file(const std::string& path) {
  const auto facts = tree_at(path).examine(path, FileTree::Links::keep);
  if (facts && S_ISLNK(facts->st_mode)) return tree_at(path).remove(path);
  while (true) {
    SHIMA_TRY_ASSIGN(const bool is_striped, is_name_of_striped(path));
    if (is_striped) return carry_out(path, RemoveIntent{});
    SHIMA_TRY_ASSIGN(const auto lock, DirectoryLock::take_for_plain(path));
    SHIMA_TRY_ASSIGN(const bool has_become_striped, is_name_of_striped(path));
    if (!has_become_striped) return tree_at(path).remove(path);
  }
}

bool is_only_name_of_striped(const char* name) {
  struct stat facts{};
  if (::lstat(name, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_nlink != 1 ||
      facts.st_size > static_cast<off_t>(largest_master_bytes))
    return false;
  const UniqueFd file(::open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, master_magic.size()> beginning{};
  const ssize_t found = file ? ::read(file.get(), beginning.data(), beginning.size()) : -1;
  return found > 0 && looks_like_master({beginning.data(), static_cast<std::size_t>(found)});
}

}  // namespace shima
