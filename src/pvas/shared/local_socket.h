// Abstract sockets, by which the processes of one user find each other: a name is there as long as
// a process has it bound, whatever becomes of that process.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

// The names of different users are different.
[[nodiscard]] std::string socket_name_for(const std::string& key);

// Of a group of spaces: of one of them, of what it has of the group's memory, and of a lock.
[[nodiscard]] std::string group_space_name(const std::string& group, int slice, int slices);
[[nodiscard]] std::string group_memory_name(const std::string& group, int slice);
[[nodiscard]] std::string group_lock_name(const std::string& group);

// file_exists where the name is taken.
[[nodiscard]] Result<UniqueFd> bind_local(const std::string& name);
[[nodiscard]] Status listen_local(const UniqueFd& socket);

// no_such_file where nobody listens, access_denied where it is a process of another user.
[[nodiscard]] Result<UniqueFd> connect_local(const std::string& name);

}  // namespace shima::pvas
