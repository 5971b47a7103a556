// Enlarges the kernel's read-ahead for a mount.
//
// The default is 128 KiB per request, and a reply of 1 MiB costs about the same. Only root may
// change the setting, per mount, in /sys, after the mount has negotiated its limits.
#pragma once

#include <string>

namespace shima::fuse {

// Does nothing if not permitted or not possible.
void enlarge_read_ahead(const std::string& mount_point);

}  // namespace shima::fuse
