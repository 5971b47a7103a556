// The user of this machine as whom a thread of the daemon opens files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace shima::iod {

struct Identity {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;
};

// As the system's list of users has it.
[[nodiscard]] Result<Identity> find_identity(const std::string& user);

// For the calling thread alone, and for good: it also gives up all capabilities. The kernel then
// checks each access as it does for programs of this user, and new files are theirs. Only the user
// and groups for files change: as a thread with the user's other IDs, it could be killed by
// programs of this user, and the daemon with it.
[[nodiscard]] Status take_identity(const Identity& identity);

}  // namespace shima::iod
