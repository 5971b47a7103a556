// Who holds a lock on a file, for error messages.
#pragma once

#include <fcntl.h>

#include <string>
#include <string_view>

namespace shima {

inline constexpr std::string_view unknown_lock_holder = "a process that is not known";

// "process 77 (shima) on HOST" for the process that holds a lock which conflicts with `wanted` on
// the file of `fd`. The kernel does not tell who holds the lock of an open file description, so the
// descriptors of all processes that this user may look at are searched.
[[nodiscard]] std::string holder_of_lock(int fd, const struct flock& wanted);

}  // namespace shima
