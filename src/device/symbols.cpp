#include "device/symbols.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <tuple>

#include "audit/library_loads.h"

namespace shima {
namespace {

struct Search {
  std::string_view name;
  std::string path;
};

// dlopen(3) would search all directories of libraries for one that is not loaded.
int compare_name(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::string_view path = library->dlpi_name;
  if (!path.substr(path.rfind('/') + 1).starts_with(search.name)) return 0;
  search.path = path;
  return 1;
}

// The word in which the audit library counts; it outlives this library. Without one, the request
// would search all directories.
std::uint64_t* start_counting() {
  auto* const word = new std::uint64_t(0);
  if (std::getenv("LD_AUDIT") != nullptr) {
    const auto name =
        fmt::format("{}{:x}", audit::library_loads_prefix, reinterpret_cast<std::uintptr_t>(word));
    std::ignore = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }
  return word;
}

int take_load_count(dl_phdr_info* library, std::size_t, void* data) {
  *static_cast<std::uint64_t*>(data) = library->dlpi_adds;
  return 1;
}

}  // namespace

std::optional<LoadedLibrary> LoadedLibrary::find(std::string_view name, const char* symbol) {
  if (::dlsym(RTLD_DEFAULT, symbol) != nullptr) return LoadedLibrary(RTLD_DEFAULT);
  Search search{name, {}};
  if (::dl_iterate_phdr(&compare_name, &search) == 0) return {};
  void* const handle = ::dlopen(search.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  LoadedLibrary library(handle);
  if (library.look_up(symbol) == nullptr) return {};
  return library;
}

void* LoadedLibrary::look_up(const char* symbol) {
  void* const found = ::dlsym(handle_, symbol);
  if (found == nullptr) missing_ = symbol;
  return found;
}

std::uint64_t loads_so_far() {
  static std::uint64_t* const counted = start_counting();
  std::uint64_t loads = std::atomic_ref(*counted).load(std::memory_order_acquire);
  if (loads != 0) return loads;
  ::dl_iterate_phdr(&take_load_count, &loads);
  return loads;
}

}  // namespace shima
