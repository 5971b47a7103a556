#include "mpiio/access/device_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>

namespace shima {
namespace {

// CUDA's driver interface, cuda.h: CUresult cuPointerGetAttribute(void*, CUpointer_attribute,
// CUdeviceptr). HIP's hipPointerGetAttribute has the same shape and, since ROCm 6, the same
// numbers.
using GetAttribute = int(void* data, int attribute, unsigned long long pointer);
constexpr int attribute_memory_type = 2;
constexpr int attribute_is_managed = 8;
constexpr unsigned type_device = 2;

struct Driver {
  const char* name;
  std::array<std::string_view, 2> libraries;  // how the names of their files begin
  const char* symbol;
  std::atomic<GetAttribute*> get_attribute{nullptr};
};

Driver cuda{"CUDA", {"libcuda.so"}, "cuPointerGetAttribute", nullptr};
Driver hip{"HIP", {"libamdhip64.so.6", "libamdhip64.so.7"}, "hipPointerGetAttribute", nullptr};

struct LoadedLibrary {
  const Driver& driver;
  std::string path;
};

// Asking dlopen(3) would make it look through all folders of libraries for what is not loaded.
int compare_name(dl_phdr_info* library, std::size_t, void* data) {
  auto& wanted = *static_cast<LoadedLibrary*>(data);
  const std::string_view path = library->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view beginning : wanted.driver.libraries) {
    if (beginning.empty() || !name.starts_with(beginning)) continue;
    wanted.path = path;
    return 1;
  }
  return 0;
}

// CUDA's runtime loads the driver for itself alone, so that its names are not in global scope.
void look_for(Driver& driver) {
  void* found = ::dlsym(RTLD_DEFAULT, driver.symbol);
  LoadedLibrary wanted{driver, {}};
  if (found == nullptr && ::dl_iterate_phdr(&compare_name, &wanted) != 0) {
    if (void* const library = ::dlopen(wanted.path.c_str(), RTLD_LAZY | RTLD_NOLOAD))
      found = ::dlsym(library, driver.symbol);
  }
  driver.get_attribute = reinterpret_cast<GetAttribute*>(found);
}

bool is_device_memory(GetAttribute* get_attribute, const void* address) {
  const auto pointer = reinterpret_cast<std::uintptr_t>(address);
  unsigned type = 0;
  unsigned managed = 0;
  if (get_attribute(&type, attribute_memory_type, pointer) != 0 || type != type_device)
    return false;
  // The driver moves managed memory to whoever touches it.
  return get_attribute(&managed, attribute_is_managed, pointer) != 0 || managed == 0;
}

}  // namespace

void look_for_gpu_drivers() {
  for (Driver* driver : {&cuda, &hip})
    if (driver->get_attribute.load(std::memory_order_relaxed) == nullptr) look_for(*driver);
}

Status check_host_memory(const void* address) {
  for (const Driver* driver : {&cuda, &hip}) {
    GetAttribute* const get_attribute = driver->get_attribute.load(std::memory_order_relaxed);
    if (get_attribute != nullptr && is_device_memory(get_attribute, address))
      return fail(Code::bad_argument,
                  fmt::format("the buffer {} is memory of a {} device, which files cannot be read "
                              "to or written from: copy it to host memory first",
                              address, driver->name));
  }
  return {};
}

}  // namespace shima
