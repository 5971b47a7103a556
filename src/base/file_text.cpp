#include "base/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace shima {

Result<std::string> file_text(const std::string& path) {
  constexpr std::size_t part_bytes = 16 << 10;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(errno, "opening " + path);
  std::string text;
  for (std::size_t len = 0;;) {
    text.resize(len + part_bytes);
    const ssize_t got = ::read(file.get(), text.data() + len, part_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "reading " + path);
    len += static_cast<std::size_t>(got);
    text.resize(len);
    if (got == 0) return text;
  }
}

}  // namespace shima
