// Copies that some processors execute slowly, and plain copies that avoid it.
//
// Since Zen 3, AMD's processors execute `rep movsb` up to 25 times slower than otherwise if the
// destination lies 1 to 31 bytes behind the source, whole pages not counted. Linux copies by that
// instruction between files, sockets and memory, and so do some C libraries from about 2 KiB on.
// Large memory from malloc lies 16 bytes behind a page, a page of a file at its beginning: the most
// usual read of all has such a distance. Whether this processor is one of them is measured.
//
// Source: glibc bug 30994; docs/measurements.md, "Copies at a short distance".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shima {

// Measured once.
[[nodiscard]] bool has_slow_distances();

// Whether a copy at this distance is slow on processors that have such distances. To avoid it costs
// as much for shorter ones.
[[nodiscard]] constexpr bool is_slow_distance(std::uintptr_t to, std::uintptr_t from,
                                              std::uint64_t len_bytes) {
  constexpr std::uintptr_t page_bytes = 4096;
  return len_bytes >= 1024 && (to - from) % page_bytes - 1 < 31;
}

[[nodiscard]] inline bool is_slow_copy(std::uintptr_t to, std::uintptr_t from,
                                       std::uint64_t len_bytes) {
  return is_slow_distance(to, from, len_bytes) && has_slow_distances();
}

// memcpy in steps for which glibc does not use `rep movsb`.
inline void copy_in_steps(void* to, const void* from, std::size_t len_bytes) {
  constexpr std::size_t step_bytes = 2048;
  for (std::size_t done = 0; done < len_bytes; done += step_bytes)
    std::memcpy(static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done,
                std::min(step_bytes, len_bytes - done));
}

// memcpy, in steps if the distance is slow.
inline void copy_bytes(void* to, const void* from, std::size_t len_bytes) {
  if (is_slow_copy(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from),
                   len_bytes))
    return copy_in_steps(to, from, len_bytes);
  std::memcpy(to, from, len_bytes);
}

// The same for memory that may overlap.
inline void move_bytes(void* to, const void* from, std::size_t len_bytes) {
  const std::uintptr_t distance =
      reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (distance >= len_bytes && 0 - distance >= len_bytes) return copy_bytes(to, from, len_bytes);
  std::memmove(to, from, len_bytes);
}

}  // namespace shima
