// File systems on which nodes do not see each other's bytes at once (NFS and similar ones).
//
// On these, fsync or close makes a node's cache send written data. The cache asks for the data of
// other nodes when a file is opened, and Linux's NFS client also when a lock is taken. So a
// descriptor that stays open must be renewed in one of these ways before it can read what another
// node has sent meanwhile.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace shima {

// Whether `fd` is on such a file system.
[[nodiscard]] bool is_close_to_open(int fd);

// Whether every write to a file of this file system goes through this node's kernel, so that the
// kernel knows of it. False if unknown.
[[nodiscard]] bool is_local(int fd);

// Whether a local file system reserves the space of a page when it is first written through a
// mapping, so that a full disk is noticed then.
[[nodiscard]] bool reserves_mapped_pages(int fd);

// Whether a mapping of a local file shows the same pages as read(2). With overlayfs it may show a
// lower file that another process has replaced by writing to it.
[[nodiscard]] bool maps_what_is_read(int fd);

// A number by which nodes find out that they access one file through one kernel; 0 if the file
// system is not local.
[[nodiscard]] std::uint64_t local_identity(int fd);

// Whether `fd` is on NFS.
[[nodiscard]] bool is_nfs(int fd);

// Whether locks exclude only processes of this node, although other nodes can access the file.
[[nodiscard]] bool locks_stay_on_node(int fd);

// Another descriptor of the file of `fd`, opened with `flags`. The path is for error messages: the
// file may have lost its name.
[[nodiscard]] Result<int> open_anew(int fd, int flags, const std::string& path);

// Replaces `fd` by `fresh`, so that calls in progress in other threads continue. Locks of the old
// descriptor are lost.
[[nodiscard]] Status replace_descriptor(int fd, int fresh, const std::string& path);

}  // namespace shima
