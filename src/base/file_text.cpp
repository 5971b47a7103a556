#include "base/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/unique_fd.h"

namespace shima {

Result<std::string> file_text(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(errno, "opening " + path);
  return read_up_to(file.get(), std::numeric_limits<std::size_t>::max(), path);
}

Result<std::string> read_up_to(int fd, std::size_t most_bytes, const std::string& path) {
  std::string text;
  std::array<char, 8192> part{};
  while (text.size() < most_bytes) {
    const ssize_t n = ::read(fd, part.data(), std::min(part.size(), most_bytes - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(errno, "reading " + path);
    if (n == 0) break;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace shima
