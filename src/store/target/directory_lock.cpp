#include "store/target/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "store/target/own_directory.h"
#include "store/target/paths.h"
#include "store/target/text_file.h"

namespace shima {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int default_timeout_s = 60;
constexpr std::size_t longest_holder = 200;

std::string name_of_lock(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return own_directory_of(directory) + "/" + lock_file_name;
}

// --- the file -----------------------------------------------------------------------------------

// Write permission of the directory is permission to lock.
mode_t mode_for_writers(mode_t writers) {
  return 0600U | ((writers & S_IWGRP) != 0 ? 0060U : 0U) | ((writers & S_IWOTH) != 0 ? 0006U : 0U);
}

void give_to_writers(int fd, const struct stat& directory) {
  if (::fchown(fd, directory.st_uid, directory.st_gid) != 0)
    std::ignore = ::fchown(fd, static_cast<uid_t>(-1), directory.st_gid);
  std::ignore = ::fchmod(fd, mode_for_writers(directory.st_mode));
}

// The file appears with its final mode if the file system supports that: a kill must not leave a
// lock file that other users cannot open.
Status make_lock_file(int own_fd, const std::string& path) {
  struct stat directory{};
  if (::fstat(own_fd, &directory) != 0) return failed("examining", path);
  const UniqueFd draft(::openat(own_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (draft) {
    give_to_writers(draft.get(), directory);
    const std::string name = fmt::format("/proc/self/fd/{}", draft.get());
    if (::linkat(AT_FDCWD, name.c_str(), own_fd, lock_file_name, AT_SYMLINK_FOLLOW) == 0 ||
        errno == EEXIST)
      return {};
  }
  const UniqueFd fd(::openat(own_fd, lock_file_name,
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             mode_for_writers(directory.st_mode)));
  if (fd) give_to_writers(fd.get(), directory);
  return fd || errno == EEXIST ? Status{} : Status(failed("making", path));
}

Result<UniqueFd> open_lock_file(const std::string& path, DirectoryLock::IfUnused unused) {
  const bool make = unused == DirectoryLock::IfUnused::make;
  const std::string name = name_of_lock(path);
  SHIMA_TRY_ASSIGN(const UniqueFd own,
                   open_own_directory(path, make ? IfMissing::make : IfMissing::fail));
  const auto open = [&] {
    return UniqueFd(
        ::openat(own.get(), lock_file_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  };
  UniqueFd fd = open();
  if (!fd && errno == ENOENT && make) {
    SHIMA_TRY(make_lock_file(own.get(), name));
    fd = open();
  }
  struct stat facts{};
  if (!fd && errno == EACCES)
    return fail(Code::access_denied,
                name + " cannot be opened by this user; its owner can permit it by chmod g+rw",
                EACCES);
  if (!fd) return failed("opening the lock file", name);
  if (::fstat(fd.get(), &facts) != 0) return failed("examining", name);
  if (!S_ISREG(facts.st_mode)) return fail(Code::bad_file, name + " is not a regular file");
  return fd;
}

// Another process may remove an empty .shima between its creation and that of the lock file in it.
Result<UniqueFd> open_or_make_lock_file(const std::string& path) {
  constexpr int most_attempts = 100;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  for (int attempt = 1;; ++attempt) {
    auto fd = open_lock_file(path, DirectoryLock::IfUnused::make);
    const bool was_removed = !fd && fd.error().code == Code::no_such_file &&
                             ::access(directory.empty() ? "." : directory.c_str(), F_OK) == 0;
    if (!was_removed || attempt == most_attempts) return fd;
  }
}

// The file may be removed, with its directory, while we wait for its lock.
bool still_there(int fd, const std::string& path) {
  struct stat ours{};
  struct stat there{};
  return ::fstat(fd, &ours) == 0 && ::lstat(name_of_lock(path).c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

// --- the lock -----------------------------------------------------------------------------------

// False: another process holds it.
Result<bool> lock_now(int fd, const std::string& path) {
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(fd, F_OFD_SETLK, &whole) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return failed("locking (does the file system have locks?)", path);
  }
  return true;
}

void say_who(int fd) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string text = fmt::format("process {} ({}) on {}\n", ::getpid(),
                                       program_invocation_short_name, host.data());
  if (::pwrite(fd, text.data(), text.size(), 0) > 0)
    std::ignore = ::ftruncate(fd, static_cast<off_t>(text.size()));
}

// Untrusted text: any process that may take the lock can have written it.
std::string holder(int fd) {
  std::array<char, longest_holder> text{};
  const ssize_t len = ::pread(fd, text.data(), text.size(), 0);
  std::string name(text.data(), static_cast<std::size_t>(std::max<ssize_t>(len, 0)));
  name = name.substr(0, name.find('\n'));
  for (char& c : name)
    if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
  return name.empty() ? "an unknown process" : name;
}

// No lock file, no .shima, or no directory of that name; not: a lock that cannot be opened.
bool is_nothing_there(const Error& error) {
  return error.code == Code::no_such_file || error.code == Code::bad_file_name;
}

class LocalHold final : public DirectoryHold {
 public:
  explicit LocalHold(UniqueFd fd) : fd_(std::move(fd)) {}

  void admit_writers_of(const std::string& path) override {
    struct stat lock{};
    struct stat file{};
    if (::fstat(fd_.get(), &lock) != 0 || ::lstat(path.c_str(), &file) != 0) return;
    if (S_ISLNK(file.st_mode)) return;
    const mode_t wanted = mode_for_writers(file.st_mode) | (lock.st_mode & 0777U);
    const bool other_group = (file.st_mode & S_IWGRP) != 0 && file.st_gid != lock.st_gid;
    if (other_group && (lock.st_mode & S_IWGRP) == 0)
      std::ignore = ::fchown(fd_.get(), static_cast<uid_t>(-1), file.st_gid);
    if (wanted != (lock.st_mode & 0777U)) std::ignore = ::fchmod(fd_.get(), wanted);
  }

 private:
  UniqueFd fd_;
};

// Waits until `end` at the latest.
Result<std::unique_ptr<DirectoryHold>> lock_until(Clock::time_point end, const std::string& path,
                                                  FileTree::IfUnused unused) {
  constexpr std::chrono::milliseconds longest_pause{50};
  std::chrono::milliseconds pause{1};
  const bool waits = end > Clock::now();
  while (true) {
    auto hold = tree_at(path).try_lock(path, unused);
    if (hold || hold.error().code != Code::file_in_use || !waits) return hold;
    if (Clock::now() >= end)
      return fail(Code::timed_out, hold.error().what +
                                       "; nothing was done (SHIMA_LOCK_TIMEOUT sets how many "
                                       "seconds to wait)");
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longest_pause);
  }
}

}  // namespace

std::chrono::seconds lock_timeout() {
  const char* const text = std::getenv("SHIMA_LOCK_TIMEOUT");
  const long seconds = text == nullptr ? default_timeout_s : std::strtol(text, nullptr, 10);
  return std::chrono::seconds(std::clamp(seconds, 0L, 86400L));
}

Result<std::unique_ptr<DirectoryHold>> try_lock_here(const std::string& path,
                                                     FileTree::IfUnused unused) {
  const bool make = unused == FileTree::IfUnused::make;
  while (true) {
    auto fd = make ? open_or_make_lock_file(path) : open_lock_file(path, unused);
    if (!fd && !make && is_nothing_there(fd.error())) return nullptr;
    if (!fd) return std::unexpected(fd.error());
    SHIMA_TRY_ASSIGN(const bool locked, lock_now(fd->get(), name_of_lock(path)));
    if (!locked)
      return fail(Code::file_in_use,
                  fmt::format("{} is changing striped files in the directory, according to {}",
                              holder(fd->get()), name_of_lock(path)));
    if (!still_there(fd->get(), path)) continue;
    say_who(fd->get());
    return std::make_unique<LocalHold>(*std::move(fd));
  }
}

Result<DirectoryLock> DirectoryLock::take(const std::string& path, IfUnused unused) {
  DirectoryLock taken;
  SHIMA_TRY_ASSIGN(taken.hold_, lock_until(Clock::now() + lock_timeout(), path, unused));
  return taken;
}

Result<DirectoryLock> DirectoryLock::try_take(const std::string& path, IfUnused unused) {
  DirectoryLock taken;
  SHIMA_TRY_ASSIGN(taken.hold_, lock_until({}, path, unused));
  return taken;
}

Result<DirectoryLock> DirectoryLock::take_for_plain(const std::string& path) {
  auto taken = take(path, IfUnused::leave);
  if (taken) return taken;
  const Code why = taken.error().code;
  const bool is_held = why == Code::timed_out || why == Code::file_in_use;
  return is_held ? std::move(taken) : DirectoryLock();
}

Result<DirectoryLock> DirectoryLock::take_both(const std::string& a, const std::string& b) {
  return take_both_by([](const std::string& path) { return take(path); }, a, b);
}

Result<DirectoryLock> DirectoryLock::take_both_for_plain(const std::string& a,
                                                         const std::string& b) {
  return take_both_by(take_for_plain, a, b);
}

Result<DirectoryLock> DirectoryLock::take_both_by(Take take_one, const std::string& a,
                                                  const std::string& b) {
  const auto key = [](const std::string& path) -> Result<std::pair<dev_t, ino_t>> {
    const std::string directory = directory_of_path(path);
    SHIMA_TRY_ASSIGN(const struct stat facts,
                     tree_at(directory).examine(directory, FileTree::Links::follow));
    return std::pair(facts.st_dev, facts.st_ino);
  };
  SHIMA_TRY_ASSIGN(const auto key_a, key(a));
  SHIMA_TRY_ASSIGN(const auto key_b, key(b));
  const bool swapped = key_b < key_a;
  SHIMA_TRY_ASSIGN(DirectoryLock taken, take_one(swapped ? b : a));
  if (key_a == key_b) return taken;
  SHIMA_TRY_ASSIGN(DirectoryLock other, take_one(swapped ? a : b));
  taken.second_ = std::move(other.hold_);
  return taken;
}

void DirectoryLock::admit_writers_of(const std::string& path) const {
  if (hold_) hold_->admit_writers_of(path);
}

}  // namespace shima
