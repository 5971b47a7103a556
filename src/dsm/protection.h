// Which accesses the ranges of a task's donated memory permit.
//
// The table has a byte for each granule of 64 bytes. The owner alone stores to it; tasks that map
// the table, or have a copy of it, read it before each access. A check of a long range reads eight
// bytes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shima::dsm {

enum class Protection : std::uint8_t { read_write = 0, read_only = 1, none = 2 };
enum class Access : std::uint8_t { read, write };

inline constexpr std::uint64_t granule_bytes = 64;

// Whole granules.
struct Granules {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

[[nodiscard]] inline std::uint64_t granules_in(std::uint64_t len_bytes) {
  return len_bytes / granule_bytes + (len_bytes % granule_bytes != 0 ? 1 : 0);
}

class ProtectionTable {
 public:
  // The bytes of a table, a multiple of eight.
  [[nodiscard]] static std::size_t table_bytes(std::uint64_t size_bytes) {
    return static_cast<std::size_t>((granules_in(size_bytes) + 7) / 8 * 8);
  }

  ProtectionTable() = default;
  // Over table_bytes(), aligned to eight, that outlive it.
  explicit ProtectionTable(std::byte* bytes) : bytes_(reinterpret_cast<std::uint8_t*>(bytes)) {}

  // The range must lie in the memory.
  [[nodiscard]] bool allows(std::uint64_t offset, std::uint64_t len_bytes, Access access) const {
    if (len_bytes == 0) return true;
    const std::uint8_t forbidden = access == Access::write ? 3 : 2;
    const std::uint64_t first = offset / granule_bytes;
    const std::uint64_t end = (offset + len_bytes - 1) / granule_bytes + 1;
    if (end - first > 16) return allows_long(first, end, forbidden);
    for (std::uint64_t i = first; i < end; ++i)
      if ((load(i) & forbidden) != 0) return false;
    return true;
  }
  [[nodiscard]] bool is(Granules range, Protection protection) const {
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i)
      if (load(i) != static_cast<std::uint8_t>(protection)) return false;
    return true;
  }
  void set(Granules range, Protection protection) {
    for (std::uint64_t i = range.first; i < range.first + range.count; ++i)
      __atomic_store_n(bytes_ + i, static_cast<std::uint8_t>(protection), __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }

 private:
  [[nodiscard]] std::uint8_t load(std::uint64_t granule) const {
    return __atomic_load_n(bytes_ + granule, __ATOMIC_RELAXED);
  }
  [[nodiscard]] bool allows_long(std::uint64_t first, std::uint64_t end,
                                 std::uint8_t forbidden) const {
    const std::uint64_t mask = forbidden * 0x0101010101010101ULL;
    std::uint64_t found = 0;
    while (first % 8 != 0) found |= load(first++);
    for (; first + 8 <= end; first += 8)
      found |=
          __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bytes_ + first), __ATOMIC_RELAXED);
    for (; first < end; ++first) found |= load(first);
    return (found & mask) == 0;
  }

  std::uint8_t* bytes_ = nullptr;
};

}  // namespace shima::dsm
