#include "store/striped/master_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/log.h"
#include "store/striped/belonging.h"
#include "store/striped/intents.h"
#include "store/striped/parts.h"
#include "store/subfile/posix_subfile.h"
#include "store/target/target.h"
#include "store/target/text_file.h"

namespace shima {

Status create_striped(const StripedCreate& wanted) {
  StripedCreate request = wanted;
  std::error_code error;
  const auto real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(wanted.path), error);
  if (!error) request.path = real.string();
  MasterFile master{{}, request.regions, {}};
  SHIMA_TRY_ASSIGN(master.id, new_id());
  SHIMA_TRY(layout_of(master));
  struct stat facts{};
  if (::stat(request.path.c_str(), &facts) == 0) {
    if (!request.exclusive) return {};
    return fail_errno(EEXIST, "creating " + request.path);
  }
  SHIMA_TRY_ASSIGN(const auto targets,
                   open_targets(master.targets(), request.path, Target::Purpose::create));
  // fsck must not take parts without a master file for leftovers while they are being made.
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(request.path));
  SHIMA_TRY(make_parts(master, request.path, request.permissions, targets));
  const auto draft = Draft::write(request.path, encode_master(master), request.permissions);
  Status status = draft ? draft->appear(request.path) : Status(std::unexpected(draft.error()));
  if (status) lock.admit_writers_of(request.path);
  if (status) return {};
  std::ignore = remove_parts(master, targets);
  if (status.error().code == Code::file_exists && !request.exclusive) status = {};
  return status;
}

namespace {

bool may_be_master(const struct stat& facts) {
  return S_ISREG(facts.st_mode) && facts.st_size > std::ssize(master_magic) &&
         facts.st_size <= as_signed(largest_master_bytes);
}

// Whatever may be a master file must not be taken for a plain one, and be written over or removed
// alone, because it could not be opened just now, or not by us.
Status check_that_it_is_none(const std::string& path, int sys_errno) {
  constexpr std::array<int, 6> nothing_there{ENOENT, ENOTDIR, ELOOP, ENXIO, ENODEV, ENAMETOOLONG};
  if (std::ranges::find(nothing_there, sys_errno) != nothing_there.end()) return {};
  if (sys_errno != EACCES) return fail_errno(sys_errno, "opening " + path);
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !may_be_master(facts)) return {};
  return fail(Code::access_denied,
              path +
                  " may not be read, so that nobody can tell whether it is striped; the "
                  "permission to read it is needed",
              EACCES);
}

UniqueFd open_to_look(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts{};
  // Somebody has a lease, and gives it back when we wait.
  if (!fd && errno == EWOULDBLOCK && ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode))
    fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd;
}

}  // namespace

Result<std::optional<MasterFile>> read_master(const std::string& path, struct stat* found) {
  const UniqueFd fd = open_to_look(path);
  if (!fd) {
    SHIMA_TRY(check_that_it_is_none(path, errno));
    return std::nullopt;  // whoever opens it next says why
  }
  struct stat facts{};
  if (::fstat(fd.get(), &facts) != 0) return failed("examining", path);
  // Files that the system makes up (/proc) have no size, and cannot all be read.
  if (!S_ISREG(facts.st_mode) || facts.st_size == 0) return std::nullopt;
  SHIMA_TRY_ASSIGN(std::string text, read_up_to(fd.get(), master_magic.size(), path));
  if (!looks_like_master(text)) return std::nullopt;
  SHIMA_TRY_ASSIGN(const std::string rest, read_up_to(fd.get(), largest_master_bytes, path));
  text += rest;
  auto master = decode_master(text);
  if (!master) return fail(master.error().code, path + ": " + master.error().what);
  if (found != nullptr) *found = facts;
  return *std::move(master);
}

Result<std::optional<MasterFile>> read_settled_master(const std::string& link) {
  SHIMA_TRY_ASSIGN(auto master, read_master(link));
  if (!master || !master->intent) return master;
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const DirectoryLock lock, DirectoryLock::take(path));
  SHIMA_TRY_ASSIGN(master, read_master(path));  // somebody may have been here before
  if (!master || !master->intent) return master;
  const bool removes = std::holds_alternative<RemoveIntent>(*master->intent);
  SHIMA_TRY(finish_intent(path, *master));
  if (removes) return std::nullopt;
  return master;
}

Result<std::optional<MasterFile>> read_openable_master(const std::string& path) {
  auto settled = read_settled_master(path);
  if (settled) return settled;
  SHIMA_TRY_ASSIGN(auto master, read_master(path));
  const bool only_tidying = master && master->intent &&
                            (std::holds_alternative<ReplaceIntent>(*master->intent) ||
                             std::holds_alternative<MoveIntent>(*master->intent));
  if (!only_tidying) return settled;
  log(LogLevel::info, "{}: an operation remains unfinished: {}", path, describe(settled.error()));
  return master;
}

namespace {

Result<std::unique_ptr<Subfile>> open_one(const Part& part, int index,
                                          const SubfilesOpen& request) {
  struct stat facts{};
  // What is no file may let its opener wait for ever, and has no bytes at an offset.
  const bool there =
      ::fstatat(part.target->fd(), part.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISREG(facts.st_mode))
    return fail(Code::bad_file, fmt::format("{}: its subfile {} is no regular file ({}); shima "
                                            "fsck tells more",
                                            request.path, index, part.path()));
  auto subfile = open_subfile({.path = part.path(),
                               .read = request.read,
                               .write = request.write,
                               .direct_read = request.direct_read,
                               .direct_write = request.direct_write,
                               .follow_links = false,
                               .close_to_open = request.close_to_open});
  if (!subfile && subfile.error().code == Code::no_such_file)
    return fail(
        Code::bad_file,
        fmt::format("{}: its subfile {} is missing on target {} ({}); shima fsck tells more",
                    request.path, index, part.target->name(), part.target->directory()));
  if (!subfile || !request.write) return subfile;
  // The directory's name may lead to another one than was examined.
  SHIMA_TRY_ASSIGN(const FileIdentity opened, (*subfile)->identity());
  if (there && opened == FileIdentity{facts.st_dev, facts.st_ino}) return subfile;
  return fail(Code::file_in_use, part.path() + " was replaced while it was being opened");
}

}  // namespace

Result<std::vector<std::unique_ptr<Subfile>>> open_subfiles(const MasterFile& master,
                                                            const SubfilesOpen& request,
                                                            const MasterFile& standing) {
  SHIMA_TRY_ASSIGN(const auto targets,
                   open_targets(master.targets(), request.path, Target::Purpose::use));
  if (request.write) {
    SHIMA_TRY_ASSIGN(const Claimant claimant, claimant_at(request.path, standing));
    SHIMA_TRY(check_belonging(master, claimant, targets));
  }
  std::vector<std::unique_ptr<Subfile>> subfiles;
  for (const Part& part : parts_of(master, targets)) {
    const auto index = subfile_index(part.name);
    if (!index) break;  // the copies come last
    SHIMA_TRY_ASSIGN(auto subfile, open_one(part, *index, request));
    subfiles.push_back(std::move(subfile));
  }
  return subfiles;
}

Status sync_master(const MasterFile& master, const std::string& path) {
  SHIMA_TRY(sync_file(path));
  SHIMA_TRY_ASSIGN(const std::string real, real_path_of(path));
  SHIMA_TRY(sync_directory_of(real));
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master.targets(), real, Target::Purpose::use));
  for (const Target& target : targets)
    if (::fsync(target.fd()) != 0) return failed("syncing", target.directory());
  return {};
}

Status truncate_striped(const std::string& path, std::uint64_t size_bytes, const FileId* only) {
  return carry_out(path, TruncateIntent{size_bytes}, only);
}

Status remove_file(const std::string& path) {
  const auto master = read_master(path);
  // A damaged master file must not hide its subfiles from fsck by being removed alone.
  if (!master) return std::unexpected(master.error());
  struct stat facts{};
  const bool is_link = ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
  if (*master && !is_link && !is_second_master(**master, path))
    return carry_out(path, RemoveIntent{});
  if (::unlink(path.c_str()) != 0) return failed("removing", path);
  return {};
}

}  // namespace shima
