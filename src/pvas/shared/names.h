// Names for memory, in memory that tasks share.
//
// Changes are made under `lock`, which holds the number of who has it; a root frees it when that
// one is gone. A number is a task's, counted from 1, and above it (incarnation_factor) that of its
// space where several share the table.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/futex.h"
#include "base/result.h"

namespace shima::pvas {

inline constexpr std::size_t max_exports = 1024;
inline constexpr std::size_t max_name = 64;  // with the zero at its end
inline constexpr std::uint32_t incarnation_factor = 1024;

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const {
    return address >= begin && address - begin < size;
  }
};

// Memory has a name: an address of the owner's partition, or whatever it says.
struct Export {
  std::atomic<std::uint32_t> owner;  // 0 where nothing is shown
  std::array<char, max_name> name;
  std::uint64_t address;
  std::uint64_t size;
};

struct Named {
  MemoryRange memory;
  std::uint32_t owner = 0;
};

// All zero is a table without names.
struct NameTable {
  FutexWord lock;
  FutexWord changed;  // counts
  std::array<Export, max_exports> exports;

  // file_exists where the name is taken.
  [[nodiscard]] Status show(std::uint32_t owner, const std::string& name, MemoryRange memory);
  // bad_argument where it is not the owner's.
  [[nodiscard]] Status hide(std::uint32_t owner, const std::string& name);
  [[nodiscard]] Result<std::optional<Named>> find(std::uint32_t asker, const std::string& name);

  void announce();
  // What owners `first` to `last`, who are no more, had said and locked; for roots.
  void forget(std::uint32_t first, std::uint32_t last);
};

[[nodiscard]] Status judge_name(const std::string& name);

}  // namespace shima::pvas
