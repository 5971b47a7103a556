// Copies between memory that may overlap, without a call for a few bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/copy/distance.h"

namespace shima::dsm {

// The first and the last Word of the bytes; they may overlap, and all is loaded before it is
// stored.
template <class Word>
inline void copy_ends(std::byte* to, const std::byte* from, std::size_t len_bytes) {
  Word first;
  Word last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + len_bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + len_bytes - sizeof last, &last, sizeof last);
}

inline void copy_inline(std::byte* to, const std::byte* from, std::size_t len_bytes) {
  struct Half {
    std::uint64_t words[4];
  };
  if (len_bytes >= sizeof(std::uint64_t) && len_bytes <= 2 * sizeof(std::uint64_t))
    return copy_ends<std::uint64_t>(to, from, len_bytes);
  if (len_bytes >= sizeof(Half) && len_bytes <= 2 * sizeof(Half))
    return copy_ends<Half>(to, from, len_bytes);
  if (len_bytes != 0) move_bytes(to, from, len_bytes);
}

}  // namespace shima::dsm
