// How the nodes of a file see what other nodes write.
#pragma once

#include <cstdint>
#include <optional>

namespace shima {

enum class Caches : std::uint8_t {
  one,       // all use the cache of one kernel: a node, or a local file system
  coherent,  // at once
  apart,     // after the writer has published it and the reader looked again (see Subfile::publish)
};

// What members know of the file system that the file is on; plain data.
struct CacheFacts {
  std::uint64_t apart = 0;  // it publishes what was written only at close, for one of them
  std::uint64_t local = 0;  // the file of one kernel that all have; 0: not one, or not known
};

[[nodiscard]] constexpr CacheFacts join(const CacheFacts& a, const CacheFacts& b) {
  return {a.apart | b.apart, a.local == b.local ? a.local : 0};
}

// Between nodes; `told_apart`: what the user says.
[[nodiscard]] constexpr Caches caches_between(const CacheFacts& all,
                                              std::optional<bool> told_apart) {
  if (told_apart.value_or(all.apart != 0)) return Caches::apart;
  return all.local != 0 ? Caches::one : Caches::coherent;
}

}  // namespace shima
