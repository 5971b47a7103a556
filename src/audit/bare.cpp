#include "audit/bare.h"

#include <fcntl.h>

namespace shima::audit {

bool is_readable(const char* path) {
  return system_call(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(path), R_OK, 0) == 0;
}

void read_own_program(Path& path) {
  path.clear();
  const long got =
      system_call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/exe"),
                  reinterpret_cast<long>(path.text), static_cast<long>(longest_path) - 1);
  if (got <= 0) return;
  path.size = static_cast<std::size_t>(got);
  path.text[path.size] = '\0';
}

void write_error(std::string_view text) {
  system_call(SYS_write, STDERR_FILENO, reinterpret_cast<long>(text.data()),
              static_cast<long>(text.size()), 0);
}

}  // namespace shima::audit
