#include "lapi/handlers.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace shima::lapi {
namespace {

// proc(5): "begin-end perms ..." for each mapping.
bool is_executable(std::uint64_t address) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  std::array<char, 4352> line{};
  while (maps && std::fgets(line.data(), static_cast<int>(line.size()), maps.get()) != nullptr) {
    char* rest = nullptr;
    const std::uint64_t begin = std::strtoull(line.data(), &rest, 16);
    if (*rest != '-') continue;  // the rest of a long line
    const std::uint64_t end = std::strtoull(rest + 1, &rest, 16);
    if (begin <= address && address < end)
      return std::string_view(rest).substr(0, 4).ends_with('x');
  }
  return false;
}

}  // namespace

void Handlers::set(int index, void* handler) {
  const std::lock_guard hold(mutex_);
  table_[static_cast<std::size_t>(index)] = handler;
}

void* Handlers::get(int index) {
  const std::lock_guard hold(mutex_);
  return table_[static_cast<std::size_t>(index)];
}

Result<void*> Handlers::find(std::uint64_t named) {
  const std::lock_guard hold(mutex_);
  if (named < most) {
    if (void* handler = table_[static_cast<std::size_t>(named)]) return handler;
    return fail(Code::bad_argument,
                fmt::format("no header handler has index {} here; register it with LAPI_Addr_set "
                            "before other tasks send to it",
                            named));
  }
  if (!executable_.contains(named)) {
    if (!is_executable(named))
      return fail(Code::bad_argument,
                  fmt::format("header handler {:#x} is not code of this task; exchange the "
                              "addresses of handlers with LAPI_Address_init",
                              named));
    executable_.insert(named);
  }
  return reinterpret_cast<void*>(named);
}

}  // namespace shima::lapi
