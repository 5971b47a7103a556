// Abstract sockets by which processes of one user find each other. A name exists as long as a
// process has it bound, however that process ends.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

// Names of different users differ.
[[nodiscard]] std::string socket_name_for(const std::string& key);

// Names for a group of spaces: for one space, for its part of the group's memory, and for a lock.
[[nodiscard]] std::string group_space_name(const std::string& group, int slice, int slices);
[[nodiscard]] std::string group_memory_name(const std::string& group, int slice);
[[nodiscard]] std::string group_lock_name(const std::string& group);

// file_exists if the name is taken.
[[nodiscard]] Result<UniqueFd> bind_local(const std::string& name);
[[nodiscard]] Status listen_local(const UniqueFd& socket);

// no_such_file if no process listens, access_denied if the listener belongs to another user.
[[nodiscard]] Result<UniqueFd> connect_local(const std::string& name);

}  // namespace shima::pvas
