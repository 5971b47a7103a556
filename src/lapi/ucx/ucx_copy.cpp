#include "lapi/ucx/ucx_copy.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "lapi/ucx/signals_blocked.h"

namespace shima::lapi {
namespace {

namespace fs = std::filesystem;

constexpr const char* soname = "libucp.so.0";
constexpr int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

// The file of a library of this process whose name begins so; empty if there is none.
fs::path loaded_library(std::span<const std::string_view> begins) {
  struct Search {
    std::span<const std::string_view> begins;
    fs::path found;
  } search{begins, {}};
  const auto look = [](dl_phdr_info* info, std::size_t, void* argument) {
    auto& wanted = *static_cast<Search*>(argument);
    const fs::path path(info->dlpi_name);
    const std::string name = path.filename().string();
    if (std::ranges::none_of(wanted.begins, [&](auto begin) { return name.starts_with(begin); }))
      return 0;
    wanted.found = path;
    return 1;
  };
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

// The names of MPIs, and not those of libraries that trace them, such as libmpiP.so.
fs::path mpi_directory() {
  constexpr std::array<std::string_view, 3> names{"libmpi.so", "libmpich.so", "libmpi_"};
  std::error_code ignored;
  return fs::canonical(loaded_library(names), ignored).parent_path();
}

// UCX that the MPI brings, in the directories that wheels and installations use.
std::optional<fs::path> bundled_copy(const fs::path& mpi) {
  if (mpi.empty()) return {};
  for (const char* const below : {".", "mpich", "openmpi"}) {
    fs::path path = (mpi / below / soname).lexically_normal();
    std::error_code ignored;
    if (fs::exists(path, ignored)) return path;
  }
  return {};
}

// A part of Open MPI that it loads later and that is linked with UCX: opened here, the loader finds
// the copy that Open MPI would get.
void open_ucx_parts(const fs::path& mpi) {
  constexpr std::array parts{"libmca_common_ucx.so", "openmpi/mca_pml_ucx.so",
                             "openmpi/mca_osc_ucx.so"};
  for (const char* const part : parts) {
    std::error_code ignored;
    if (fs::exists(mpi / part, ignored))
      std::ignore = ::dlopen((mpi / part).c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  }
}

std::string loaded_copy() {
  constexpr std::array<std::string_view, 1> name{"libucp"};
  return loaded_library(name).string();
}

Result<UcxCopy> open_library(const std::string& name) {
  void* const handle = ::dlopen(name.c_str(), mode);
  if (handle == nullptr) return fail(Code::unsupported_operation, ::dlerror());
  link_map* map = nullptr;
  ::dlinfo(handle, RTLD_DI_LINKMAP, &map);
  return UcxCopy{handle, map != nullptr ? map->l_name : name};
}

// UCX takes over signals when it is loaded, unless these say otherwise. What the user has set
// counts, and nothing stays in the environment.
class QuietEnvironment {
 public:
  QuietEnvironment() {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      is_set_[i] = std::getenv(settings[i].name) == nullptr;
      if (is_set_[i]) ::setenv(settings[i].name, settings[i].value, 1);
    }
  }
  QuietEnvironment(const QuietEnvironment&) = delete;
  QuietEnvironment& operator=(const QuietEnvironment&) = delete;
  ~QuietEnvironment() {
    for (std::size_t i = 0; i < settings.size(); ++i)
      if (is_set_[i]) ::unsetenv(settings[i].name);
  }

 private:
  struct Setting {
    const char* name;
    const char* value;
  };
  static constexpr std::array<Setting, 3> settings{
      {{"UCX_HANDLE_ERRORS", "none"}, {"UCX_ERROR_SIGNALS", ""}, {"UCX_DEBUG_SIGNO", "0"}}};
  std::array<bool, settings.size()> is_set_{};
};

}  // namespace

Result<UcxCopy> open_ucx_copy() {
  const SignalsBlocked blocked;  // UCX may start threads when it is loaded
  const QuietEnvironment quiet;
  const char* const chosen = std::getenv(ucx_library_variable);
  const std::string loaded = loaded_copy();
  if (chosen != nullptr && !loaded.empty() && ::dlopen(chosen, mode | RTLD_NOLOAD) == nullptr)
    return fail(Code::unsupported_operation,
                fmt::format("{} would be a second copy of UCX in this process, which has {}",
                            chosen, loaded));
  if (chosen != nullptr) return open_library(chosen);
  if (!loaded.empty()) return open_library(loaded);
  const fs::path mpi = mpi_directory();
  if (!mpi.empty()) open_ucx_parts(mpi);
  if (const std::string part_of_mpi = loaded_copy(); !part_of_mpi.empty())
    return open_library(part_of_mpi);
  if (const auto bundled = bundled_copy(mpi)) return open_library(*bundled);
  return open_library(soname);
}

}  // namespace shima::lapi
