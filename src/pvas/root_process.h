// Finding a space's root, or making it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

// A space is known by the abstract socket of its root. Spaces of different users, and those with
// different keys, are different.
[[nodiscard]] std::string socket_name_for(const std::string& key);
// For a space that only its maker names.
[[nodiscard]] std::string random_key();

inline constexpr int max_slices = 8;

struct WhichSpace {
  std::string socket_name;
  int slice = 0;  // of `slices` equal parts of the addresses
  int slices = 1;
};

// Connects to a root that is there (no_such_file where none is).
[[nodiscard]] Result<UniqueFd> connect_root(const std::string& socket_name);

// The same; of those who call it for one space at the same time one makes the root, and all are
// connected to it.
[[nodiscard]] Result<UniqueFd> connect_or_make_root(const WhichSpace& space);

}  // namespace shima::pvas
