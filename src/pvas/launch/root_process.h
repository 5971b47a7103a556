// Finding a space's root, or making it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/shared/local_socket.h"

namespace shima::pvas {

// For a space that only its maker names; the key of its root's abstract socket.
[[nodiscard]] std::string random_key();

struct WhichSpace {
  std::string socket_name;
  int slice = 0;  // of `slices` equal parts of the addresses
  int slices = 1;
  std::string group{};  // of spaces that share memory; "" for none
  bool eager = false;   // map all of that memory at once
};

// Connects to a root that is there (no_such_file where none is).
[[nodiscard]] Result<UniqueFd> connect_root(const std::string& socket_name);

// The same; of those who call it for one space at the same time one makes the root, and all are
// connected to it.
[[nodiscard]] Result<UniqueFd> connect_or_make_root(const WhichSpace& space);

}  // namespace shima::pvas
