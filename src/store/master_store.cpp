#include "store/master_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "store/posix_subfile.h"

namespace shima {
namespace {

std::unexpected<Error> failed(std::string_view doing, const std::string& what) {
  return fail_errno(errno, fmt::format("{} {}", doing, what));
}

Result<FileId> new_id() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes))
    return fail_errno(errno, "drawing a random number");
  FileId id;
  for (const unsigned char byte : bytes) id.hex += fmt::format("{:02x}", byte);
  return id;
}

std::string copy_name(const FileId& id) { return id.hex + ".master"; }

// --- text files ---------------------------------------------------------------------------------

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("writing", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> read_up_to(int fd, std::size_t most_bytes, const std::string& path) {
  std::string text;
  std::array<char, 8192> part{};
  while (text.size() < most_bytes) {
    const ssize_t n = ::read(fd, part.data(), std::min(part.size(), most_bytes - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("reading", path);
    if (n == 0) break;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  return text;
}

Status sync_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return failed("syncing", path);
  return {};
}

// A file that nobody can see yet, in the folder where it is to appear.
class Draft {
 public:
  static Result<Draft> write(const std::string& path, std::string_view text, mode_t mode) {
    SHIMA_TRY_ASSIGN(const FileId id, new_id());
    const std::filesystem::path goal(path);
    Draft draft;
    draft.path_ =
        (goal.parent_path() / fmt::format(".{}.shima-{}", goal.filename().string(), id.hex.substr(0, 8)))
            .string();
    const UniqueFd fd(::open(draft.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd) {
      draft.path_.clear();
      return failed("creating", path);
    }
    SHIMA_TRY(write_all(fd.get(), text, path));
    return draft;
  }

  Draft(Draft&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Draft& operator=(Draft&&) = delete;
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  // Gives it its name where nothing has it yet; file_exists otherwise.
  Status appear(const std::string& path) const {
    return ::link(path_.c_str(), path.c_str()) == 0 ? Status{} : Status(failed("creating", path));
  }
  // Takes the place of what has the name, and will still have it if the machine fails.
  Status replace(const std::string& path) {
    SHIMA_TRY(sync_file(path_));
    struct stat old{};
    if (::stat(path.c_str(), &old) != 0) return failed("examining", path);
    // As open to others as the old one, and theirs whose that was, as far as we may.
    if (::chmod(path_.c_str(), old.st_mode & 07777) != 0) return failed("changing", path);
    std::ignore = ::chown(path_.c_str(), old.st_uid, old.st_gid);
    if (::rename(path_.c_str(), path.c_str()) != 0) return failed("replacing", path);
    path_.clear();
    return {};
  }

 private:
  Draft() = default;
  std::string path_;
};

void sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

// --- subfiles and copies ------------------------------------------------------------------------

Status make_subfile(const Target& target, const std::string& name, mode_t mode) {
  const UniqueFd fd(::openat(target.fd(), name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return failed("creating a subfile on target " + target.name() + ",",
                         target.directory() + "/" + name);
  return {};
}

std::string copy_of(const MasterFile& master, const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return encode_master(master) + fmt::format("path {}\n", error ? path : real.string());
}

Status write_copies(const MasterFile& master, const std::string& path,
                    const std::vector<Target>& targets, mode_t mode) {
  const std::string text = copy_of(master, path);
  for (const Target& target : targets) {
    const std::string name = copy_name(master.id);
    const UniqueFd fd(::openat(target.fd(), name.c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) return failed("writing", target.directory() + "/" + name);
    SHIMA_TRY(write_all(fd.get(), text, target.directory() + "/" + name));
  }
  return {};
}

// What is already gone is no error: somebody may have begun this before.
Status remove_parts(const MasterFile& master, const std::vector<Target>& targets) {
  const std::vector<std::string> names = master.targets();
  const auto remove = [](const Target& target, const std::string& name) -> Status {
    if (::unlinkat(target.fd(), name.c_str(), 0) == 0 || errno == ENOENT) return {};
    return failed("removing", target.directory() + "/" + name);
  };
  for (std::size_t i = 0; i < names.size(); ++i)
    SHIMA_TRY(remove(target_called(targets, names[i]), subfile_name(master.id, static_cast<int>(i))));
  for (const Target& target : targets) SHIMA_TRY(remove(target, copy_name(master.id)));
  return {};
}

// Makes everything but the name; what was made is gone again if something fails.
Status make_parts(const MasterFile& master, const StripedCreate& request,
                  const std::vector<Target>& targets) {
  const std::vector<std::string> names = master.targets();
  Status status;
  for (std::size_t i = 0; i < names.size() && status; ++i)
    status = make_subfile(target_called(targets, names[i]),
                          subfile_name(master.id, static_cast<int>(i)), request.permissions);
  if (status) status = write_copies(master, request.path, targets, request.permissions);
  if (!status) std::ignore = remove_parts(master, targets);
  return status;
}

// --- intents ------------------------------------------------------------------------------------

Status put_master(const std::string& path, const MasterFile& master) {
  SHIMA_TRY_ASSIGN(Draft draft, Draft::write(path, encode_master(master), 0600));
  SHIMA_TRY(draft.replace(path));
  sync_folder_of(path);
  return {};
}

// The path of what changes is the file itself, not a link to it.
Result<std::string> real_path_of(const std::string& path) {
  std::error_code error;
  auto real = std::filesystem::canonical(path, error);
  if (error) return fail(code_of_errno(error.value()), "finding " + path, error.value());
  return real.string();
}

Status truncate_subfiles(const MasterFile& master, const std::vector<Target>& targets,
                         std::uint64_t size_bytes) {
  SHIMA_TRY_ASSIGN(const Layout layout, layout_of(master));
  const std::vector<std::string> names = master.targets();
  for (int i = 0; i < layout.subfile_count(); ++i) {
    const Target& target = target_called(targets, names[static_cast<std::size_t>(i)]);
    const std::string name = subfile_name(master.id, i);
    const UniqueFd fd(::openat(target.fd(), name.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd || ::ftruncate(fd.get(), layout.below(i, FileOffset{as_signed(size_bytes)}).value) != 0)
      return failed("setting the size of", target.directory() + "/" + name);
  }
  return {};
}

// Only one at a time settles a file; the lock is that of the folder's, since the file is replaced.
class FolderLock {
 public:
  static Result<FolderLock> take(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return failed("opening", folder);
    while (::flock(fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return failed("locking", folder);
    return FolderLock(std::move(fd));
  }

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

Status finish(const std::string& path, MasterFile& master) {
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(master.targets(), path, Target::Purpose::use));
  if (const auto* truncate = std::get_if<TruncateIntent>(&*master.intent)) {
    SHIMA_TRY(truncate_subfiles(master, targets, truncate->size_bytes));
  } else if (std::holds_alternative<RemoveIntent>(*master.intent)) {
    SHIMA_TRY(remove_parts(master, targets));
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("removing", path);
    return {};
  } else if (const auto* replaced = std::get_if<ReplaceIntent>(&*master.intent)) {
    const MasterFile before{replaced->from, {{{0}, 1, replaced->targets}}, {}};
    SHIMA_TRY_ASSIGN(const auto old, open_targets(replaced->targets, path, Target::Purpose::use));
    SHIMA_TRY(remove_parts(before, old));
  }
  master.intent.reset();
  return put_master(path, master);
}

// Records what is to be done with a striped file, and does it.
Status carry_out(const std::string& link, const Intent& intent) {
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const FolderLock lock, FolderLock::take(path));
  SHIMA_TRY_ASSIGN(auto master, read_master(path));
  if (!master) return fail(Code::no_such_file, path + " is no striped file any more");
  if (master->intent) SHIMA_TRY(finish(path, *master));
  // Nothing is begun that could not be finished.
  SHIMA_TRY(open_targets(master->targets(), path, Target::Purpose::use));
  master->intent = intent;
  SHIMA_TRY(put_master(path, *master));
  return finish(path, *master);
}

}  // namespace

std::string subfile_name(const FileId& id, int index) { return fmt::format("{}.{}", id.hex, index); }

Status create_striped(const StripedCreate& wanted) {
  StripedCreate request = wanted;
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(wanted.path, error);
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
  SHIMA_TRY(make_parts(master, request, targets));
  const auto draft = Draft::write(request.path, encode_master(master), request.permissions);
  Status status = draft ? draft->appear(request.path) : Status(std::unexpected(draft.error()));
  if (status) return {};
  std::ignore = remove_parts(master, targets);
  if (status.error().code == Code::file_exists && !request.exclusive) status = {};
  return status;
}

Result<std::optional<MasterFile>> read_master(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;  // whoever opens it next says why
  std::array<char, master_magic.size()> head{};
  const ssize_t n = ::read(fd.get(), head.data(), head.size());
  if (n != std::ssize(head) || !looks_like_master({head.data(), head.size()})) return std::nullopt;
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return failed("reading", path);
  SHIMA_TRY_ASSIGN(const std::string text, read_up_to(fd.get(), largest_master_bytes + 1, path));
  auto master = decode_master(text);
  if (!master) return fail(master.error().code, path + ": " + master.error().what);
  return *std::move(master);
}

Result<std::optional<MasterFile>> read_settled_master(const std::string& link) {
  SHIMA_TRY_ASSIGN(auto master, read_master(link));
  if (!master || !master->intent) return master;
  SHIMA_TRY_ASSIGN(const std::string path, real_path_of(link));
  SHIMA_TRY_ASSIGN(const FolderLock lock, FolderLock::take(path));
  SHIMA_TRY_ASSIGN(master, read_master(path));  // somebody may have been here before
  if (!master || !master->intent) return master;
  const bool removes = std::holds_alternative<RemoveIntent>(*master->intent);
  SHIMA_TRY(finish(path, *master));
  if (removes) return std::nullopt;
  return master;
}

Result<std::vector<std::unique_ptr<Subfile>>> open_subfiles(const MasterFile& master,
                                                            const SubfilesOpen& request) {
  const std::vector<std::string> names = master.targets();
  SHIMA_TRY_ASSIGN(const auto targets, open_targets(names, request.path, Target::Purpose::use));
  std::vector<std::unique_ptr<Subfile>> subfiles;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Target& target = target_called(targets, names[i]);
    const std::string path =
        fmt::format("{}/{}", target.directory(), subfile_name(master.id, static_cast<int>(i)));
    auto subfile = open_subfile({.path = path,
                                 .read = request.read,
                                 .write = request.write,
                                 .direct_read = request.direct_read,
                                 .direct_write = request.direct_write,
                                 .follow_links = false,
                                 .close_to_open = request.close_to_open});
    if (!subfile && subfile.error().code == Code::no_such_file)
      return fail(Code::bad_file,
                  fmt::format("{}: its subfile {} is missing on target {} ({}); shima fsck tells more",
                              request.path, i, target.name(), target.directory()));
    if (!subfile) return std::unexpected(subfile.error());
    subfiles.push_back(*std::move(subfile));
  }
  return subfiles;
}

Status sync_master(const std::string& path) {
  SHIMA_TRY(sync_file(path));
  SHIMA_TRY_ASSIGN(const std::string real, real_path_of(path));
  sync_folder_of(real);
  return {};
}

Status truncate_striped(const std::string& path, std::uint64_t size_bytes) {
  return carry_out(path, TruncateIntent{size_bytes});
}

Status remove_file(const std::string& path) {
  const auto master = read_master(path);
  // A damaged master file must not hide its subfiles from fsck by being removed alone.
  if (!master) return std::unexpected(master.error());
  struct stat facts{};
  const bool is_link = ::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode);
  if (*master && !is_link) return carry_out(path, RemoveIntent{});
  if (::unlink(path.c_str()) != 0) return failed("removing", path);
  return {};
}

}  // namespace shima
