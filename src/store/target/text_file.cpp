#include "store/target/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include "base/unique_fd.h"

namespace shima {
namespace {

constexpr std::string_view draft_mark = ".shima-";
constexpr std::size_t draft_digits = 8;
// Of a goal's name: the name of its draft must not exceed NAME_MAX either.
constexpr std::size_t longest_goal = NAME_MAX - 1 - draft_mark.size() - draft_digits;

std::string draft_name(std::string_view goal, const FileId& id) {
  return fmt::format(".{}{}{}", goal.substr(0, longest_goal), draft_mark,
                     id.hex.substr(0, draft_digits));
}

std::string directory_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

Result<UniqueFd> open_directory_of(const std::string& path) {
  const std::string directory = directory_of(path);
  UniqueFd fd(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("opening", directory);
  return fd;
}

using Attributes = std::map<std::string, std::string>;

std::string attribute(int fd, const std::string& name) {
  std::string value(
      static_cast<std::size_t>(std::max<ssize_t>(::fgetxattr(fd, name.c_str(), nullptr, 0), 0)),
      '\0');
  const ssize_t len = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
  value.resize(static_cast<std::size_t>(std::max<ssize_t>(len, 0)));
  return value;
}

// Includes access control lists, which are attributes as well.
Attributes attributes_of(int fd) {
  std::string names(static_cast<std::size_t>(std::max<ssize_t>(::flistxattr(fd, nullptr, 0), 0)),
                    '\0');
  const ssize_t len = ::flistxattr(fd, names.data(), names.size());
  names.resize(static_cast<std::size_t>(std::max<ssize_t>(len, 0)));
  Attributes all;
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    const std::string name(names.c_str() + at);
    all[name] = attribute(fd, name);
  }
  return all;
}

bool copy_attributes(int fd, int model) {
  const Attributes wanted = attributes_of(model);
  const Attributes there = attributes_of(fd);
  for (const auto& [name, value] : there)
    if (!wanted.contains(name) && ::fremovexattr(fd, name.c_str()) != 0) return false;
  for (const auto& [name, value] : wanted) {
    const auto found = there.find(name);
    if (found != there.end() && found->second == value) continue;
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) != 0) return false;
  }
  return true;
}

// Whether the last system call failed for lack of permission.
bool may_not() { return errno == EPERM || errno == EACCES; }

// For a file that we may write but not replace. A kill leaves it torn.
Status overwrite(int directory_fd, const std::string& name, std::string_view text,
                 const std::string& path) {
  const UniqueFd fd(::openat(directory_fd, name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return failed("writing", path);
  SHIMA_TRY(write_all(fd.get(), text, path));
  if (::ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0) return failed("writing", path);
  return {};
}

}  // namespace

bool make_like(int fd, int model) {
  struct stat wanted{};
  struct stat there{};
  if (::fstat(model, &wanted) != 0 || ::fstat(fd, &there) != 0) return false;
  const bool is_ours = wanted.st_uid == there.st_uid && wanted.st_gid == there.st_gid;
  const bool owned = is_ours || ::fchown(fd, wanted.st_uid, wanted.st_gid) == 0;
  if (::fchmod(fd, wanted.st_mode & 07777) != 0) return false;
  return copy_attributes(fd, model) && owned;
}

std::unexpected<Error> failed(std::string_view doing, const std::string& what) {
  return fail_errno(errno, fmt::format("{} {}", doing, what));
}

Result<FileId> new_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes))
    return fail_errno(errno, "getting a random number");
  FileId id;
  for (const unsigned char byte : bytes) id.hex += fmt::format("{:02x}", byte);
  return id;
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("writing", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Status write_whole(int directory_fd, const std::string& name, std::string_view text, mode_t mode,
                   const std::string& path, Umask umask) {
  SHIMA_TRY_ASSIGN(const FileId id, new_id());
  const UniqueFd old(
      ::openat(directory_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const std::string draft = draft_name(name, id);
  const UniqueFd fd(::openat(directory_fd, draft.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd && old && may_not()) return overwrite(directory_fd, name, text, path);
  if (!fd) return failed("writing", path);
  ::flock(fd.get(), LOCK_EX | LOCK_NB);  // shows fsck that the draft is in use
  bool in_place = old && !make_like(fd.get(), old.get());
  if (!old && umask == Umask::ignored) std::ignore = ::fchmod(fd.get(), mode);
  Status status = in_place ? Status{} : write_all(fd.get(), text, path);
  if (status && !in_place &&
      ::renameat(directory_fd, draft.c_str(), directory_fd, name.c_str()) != 0) {
    in_place = old && may_not();
    if (!in_place) status = failed("writing", path);
  }
  if (in_place || !status) ::unlinkat(directory_fd, draft.c_str(), 0);
  return in_place ? overwrite(directory_fd, name, text, path) : status;
}

Status sync_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return failed("syncing", path);
  return {};
}

Status sync_directory_here(const std::string& path) {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, open_directory_of(path));
  if (::fsync(fd.get()) != 0) return failed("syncing", directory_of(path));
  return {};
}

bool is_draft_name(std::string_view name) {
  const std::size_t mark = name.rfind(draft_mark);
  if (!name.starts_with('.') || mark == std::string_view::npos || mark < 2) return false;
  const std::string_view digits = name.substr(mark + draft_mark.size());
  return digits.size() == draft_digits && std::ranges::all_of(digits, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string goal_of_draft(std::string_view name) {
  return std::string(name.substr(1, name.rfind(draft_mark) - 1));
}

bool is_draft_of(std::string_view name, std::string_view goal) {
  return is_draft_name(name) && goal_of_draft(name) == goal.substr(0, longest_goal);
}

// --- Draft --------------------------------------------------------------------------------------

Result<Draft> Draft::write(const std::string& path, std::string_view text, mode_t mode) {
  SHIMA_TRY_ASSIGN(const FileId id, new_id());
  const std::filesystem::path goal(path);
  Draft draft;
  draft.path_ = (goal.parent_path() / draft_name(goal.filename().string(), id)).string();
  draft.fd_ = UniqueFd(::open(draft.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!draft.fd_) {
    draft.path_.clear();
    return failed("creating", path);
  }
  SHIMA_TRY(write_all(draft.fd_.get(), text, path));
  return draft;
}

Draft::~Draft() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status Draft::appear(const std::string& path) const {
  return ::link(path_.c_str(), path.c_str()) == 0 ? Status{} : Status(failed("creating", path));
}

Result<bool> Draft::replace(const std::string& path, Likeness likeness) {
  const UniqueFd old(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!old) return failed("examining", path);
  const bool alike = make_like(fd_.get(), old.get());
  if (!alike && likeness == Likeness::must_be) return false;
  if (::fsync(fd_.get()) != 0) return failed("syncing", path_);
  if (::rename(path_.c_str(), path.c_str()) != 0) {
    if (may_not()) return false;
    return failed("replacing", path);
  }
  path_.clear();
  return true;
}

}  // namespace shima
