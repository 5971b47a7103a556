// Finds a space's root, or starts one.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "pvas/shared/local_socket.h"

namespace shima::pvas {

// A space known only to its creator; the key of its root's abstract socket.
[[nodiscard]] std::string random_key();

struct WhichSpace {
  std::string socket_name;
  int slice = 0;  // of `slices` equal parts of the address range
  int slices = 1;
  std::string group{};  // of spaces that share memory; "": none
  bool eager = false;   // map all of the group's memory at start
};

// Connects to an existing root (no_such_file if there is none).
[[nodiscard]] Result<UniqueFd> connect_root(const std::string& socket_name);

// Connects to the root, and starts it if there is none. Of several concurrent callers for one
// space, one starts the root and all are connected to it.
[[nodiscard]] Result<UniqueFd> connect_or_make_root(const WhichSpace& space);

}  // namespace shima::pvas
