// How much the kernel asks for when somebody reads a file in order.
//
// It asks for 128 KiB at a time, and an answer costs as much for that as for a megabyte. Only root
// may change it, for each mount, in /sys, after the mount has said what it can do.
#pragma once

#include <string>

namespace shima::fuse {

// Does nothing where it must not or cannot.
void enlarge_read_ahead(const std::string& mount_point);

}  // namespace shima::fuse
