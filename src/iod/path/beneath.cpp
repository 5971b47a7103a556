#include "iod/path/beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string_view>

namespace shima::iod {
namespace {

std::string in_proc(const UniqueFd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

// The system would use another path: only what comes before a zero byte.
bool is_cut(std::string_view path) { return path.find('\0') != std::string_view::npos; }

// A descriptor, or -1 and errno.
int opened_by_openat2(int directory, const char* path, const open_how& how) {
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, directory, path, &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));  // EAGAIN: a rename meanwhile
  return static_cast<int>(fd);
}

}  // namespace

std::string path_without_links(const std::string& directory) {
  std::error_code error;
  const auto found = std::filesystem::canonical(directory, error);
  return error ? directory : found.string();
}

Result<UniqueFd> open_without_links(const std::string& directory, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_DIRECTORY | O_CLOEXEC);
  how.resolve = RESOLVE_NO_SYMLINKS;
  const int fd = opened_by_openat2(AT_FDCWD, directory.c_str(), how);
  if (fd >= 0) return UniqueFd(fd);
  if (errno == ELOOP)
    return fail(Code::access_denied,
                directory + ", which is served, has been replaced by a link since the start",
                EACCES);
  return fail_errno(errno, "opening the directory " + directory);
}

Result<Beneath> Beneath::open(const std::string& directory) {
  SHIMA_TRY_ASSIGN(UniqueFd fd, open_without_links(directory, O_PATH));
  return Beneath(std::move(fd));
}

Result<UniqueFd> Beneath::resolve(const std::string& path) const {
  if (is_cut(path)) return fail_errno(EINVAL, "using a path");
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int fd = opened_by_openat2(fd_.get(), path.empty() ? "." : path.c_str(), how);
  if (fd >= 0) return UniqueFd(fd);
  if (errno == EXDEV)
    return fail(Code::access_denied, path + " leads out of the directory that is served", EACCES);
  return fail_errno(errno, "finding " + path);
}

Result<PathBeneath> Beneath::object(const std::string& path) const {
  SHIMA_TRY_ASSIGN(UniqueFd fd, resolve(path));
  std::string name = in_proc(fd);
  return PathBeneath{std::move(fd), std::move(name)};
}

Result<PathBeneath> Beneath::name(const std::string& path) const {
  const std::string_view whole(path);
  const std::size_t slash = whole.rfind('/');
  const std::string_view last = whole.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (is_cut(last)) return fail_errno(EINVAL, "using a path");
  if (last.empty() || last == "." || last == ".." || last.size() > NAME_MAX)
    return fail(Code::bad_file_name, path + " does not end with a name",
                last.size() > NAME_MAX ? ENAMETOOLONG : EINVAL);
  SHIMA_TRY_ASSIGN(UniqueFd fd, resolve(path.substr(0, whole.size() - last.size())));
  std::string name = fmt::format("{}/{}", in_proc(fd), last);
  return PathBeneath{std::move(fd), std::move(name)};
}

Result<std::string> Beneath::path_of(int fd) {
  std::array<char, PATH_MAX> text{};
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  const ssize_t len = ::readlink(link.c_str(), text.data(), text.size());
  if (len < 0) return fail_errno(errno, "finding the path of a file");
  return std::string(text.data(), static_cast<std::size_t>(len));
}

Result<std::string> Beneath::real_path(const std::string& path) const {
  SHIMA_TRY_ASSIGN(const UniqueFd fd, resolve(path));
  SHIMA_TRY_ASSIGN(const std::string top, real_path());
  SHIMA_TRY_ASSIGN(const std::string found, path_of(fd.get()));
  if (found == top) return std::string();
  const std::string below = top.ends_with('/') ? top : top + "/";
  if (!found.starts_with(below)) return fail_errno(ENOENT, "finding " + path);
  return found.substr(below.size());
}

}  // namespace shima::iod
