// Functions of a library that the program has loaded.
//
// Shima never links or loads a GPU driver: a program that has device memory has loaded its driver.
// CUDA's runtime loads the driver with local scope, so its symbols are not always in global scope.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shima {

class LoadedLibrary {
 public:
  // The library whose file name begins with `name`, or the global scope if it defines `symbol`.
  // A library that is found stays loaded.
  [[nodiscard]] static std::optional<LoadedLibrary> find(std::string_view name, const char* symbol);

  // Sets `function`, to null if the library has no such symbol.
  template <class Function>
  void bind(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(look_up(symbol));
  }
  // A symbol that was not found; null if all were found.
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  explicit LoadedLibrary(void* handle) : handle_(handle) {}
  [[nodiscard]] void* look_up(const char* symbol);

  void* handle_;
  const char* missing_ = nullptr;
};

// A number that changes when a library is loaded. Costs one load if the audit library counts, and
// otherwise the loader's lock.
[[nodiscard]] std::uint64_t loads_so_far();

}  // namespace shima
