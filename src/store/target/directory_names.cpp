#include "store/target/directory_names.h"

#include <dirent.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <tuple>

#include "base/unique_fd.h"

namespace shima {

Result<std::vector<std::string>> names_in(int directory_fd, const std::string& path) {
  UniqueFd fd(::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(fd ? ::fdopendir(fd.get()) : nullptr,
                                                      ::closedir);
  if (directory == nullptr) return fail_errno(errno, "reading " + path);
  std::ignore = fd.release();  // the directory's now
  std::vector<std::string> names;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace shima
