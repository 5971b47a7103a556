// File systems on which nodes do not see each other's bytes at once (NFS and its kin).
//
// There a node's cache is asked to send what was written by fsync or close. It looks for what
// others wrote when a file is opened, and Linux's NFS client also when a lock is taken. A
// descriptor that is kept for long has to be renewed in one of these ways before it may be trusted
// to read what another node has sent meanwhile.
#pragma once

#include <string>

#include "base/result.h"

namespace shima {

// Whether `fd` lies on such a file system.
[[nodiscard]] bool is_close_to_open(int fd);

// Whether every write to a file of this file system is made by this node's kernel, which then knows
// of it. False where that is not known.
[[nodiscard]] bool is_local(int fd);

// Whether it is NFS.
[[nodiscard]] bool is_nfs(int fd);

// Whether locks exclude processes of this node alone, although other nodes reach the file.
[[nodiscard]] bool locks_stay_on_node(int fd);

// Another descriptor of the file of `fd`, opened with `flags`. The path is for messages: the file
// may have lost its name.
[[nodiscard]] Result<int> open_anew(int fd, int flags, const std::string& path);

// Puts `fresh` in the place of `fd`, so that calls under way in other threads go on. Locks of the
// old descriptor are lost.
[[nodiscard]] Status replace_descriptor(int fd, int fresh, const std::string& path);

}  // namespace shima
