// Where functions are in the memory of this process, by the symbol tables of their files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shima {

struct CodeRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// The functions of these names, and what a compiler has cut out of them (NAME.cold, NAME.part.0),
// in a program or library that is loaded with its addresses moved by `base`. Reads the file's
// complete symbol table if it was not stripped, else that of dynamic symbols. Nothing if the file
// cannot be read.
[[nodiscard]] std::vector<CodeRange> functions_in(const std::string& file, std::uintptr_t base,
                                                  std::span<const std::string_view> names);

}  // namespace shima
