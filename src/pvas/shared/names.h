// A table of names for memory, in memory that tasks share.
//
// Updates hold `lock`, which contains its holder's number; a root releases the lock of a holder
// that has died. A number is a task's, counted from 1; if several spaces share the table, the
// number of the space is added above it (incarnation_factor).
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
inline constexpr std::size_t max_name = 64;  // with the terminating zero
inline constexpr std::uint32_t incarnation_factor = 1024;

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  [[nodiscard]] bool contains(std::uint64_t address) const {
    return address >= begin && address - begin < size;
  }
};

// A named memory range: in the owner's partition, or at any place that the owner declares.
struct Export {
  std::atomic<std::uint32_t> owner;  // 0: unused
  std::array<char, max_name> name;
  std::uint64_t address;
  std::uint64_t size;
};

struct Named {
  MemoryRange memory;
  std::uint32_t owner = 0;
};

// All zero: an empty table.
struct NameTable {
  FutexWord lock;
  FutexWord changed;  // incremented by every change
  std::array<Export, max_exports> exports;

  // file_exists if the name is taken.
  [[nodiscard]] Status show(std::uint32_t owner, const std::string& name, MemoryRange memory);
  // bad_argument if the name is not the owner's.
  [[nodiscard]] Status hide(std::uint32_t owner, const std::string& name);
  [[nodiscard]] Result<std::optional<Named>> find(std::uint32_t asker, const std::string& name);

  void announce();
  // Removes the names and the lock of owners `first` to `last`, which have died; for roots.
  void forget(std::uint32_t first, std::uint32_t last);
};

[[nodiscard]] Status judge_name(const std::string& name);

}  // namespace shima::pvas
