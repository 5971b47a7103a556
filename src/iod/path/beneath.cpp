#include "iod/path/beneath.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

namespace shima::iod {
namespace {

std::string in_proc(const UniqueFd& fd) { return fmt::format("/proc/self/fd/{}", fd.get()); }

// The system would use another path: only what comes before a zero byte.
bool is_cut(std::string_view path) { return path.find('\0') != std::string_view::npos; }

}  // namespace

Result<Beneath> Beneath::open(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening the directory " + directory);
  return Beneath(std::move(fd));
}

Result<UniqueFd> Beneath::resolve(const std::string& path) const {
  if (is_cut(path)) return fail_errno(EINVAL, "using a path");
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const char* const name = path.empty() ? "." : path.c_str();
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, fd_.get(), name, &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));  // EAGAIN: a rename meanwhile
  if (fd >= 0) return UniqueFd(static_cast<int>(fd));
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
