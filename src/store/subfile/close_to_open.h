// File systems on which nodes see each other's bytes only by closing and opening (NFS and its kin).
//
// There a node's cache is asked to send what was written by fsync or close, and to look for what
// others wrote by an open. A descriptor that is kept for long therefore has to be opened anew, in
// place, before it may be trusted to read what another node has sent meanwhile.
#pragma once

#include <string>

#include "base/result.h"

namespace shima {

// Whether `fd` lies on such a file system.
[[nodiscard]] bool is_close_to_open(int fd);

// Opens the file of `fd` again with `flags` and puts it in the place of `fd`, so that calls under
// way in other threads go on. The path is for messages: the file may have lost its name.
[[nodiscard]] Status open_anew(int fd, int flags, const std::string& path);

}  // namespace shima
