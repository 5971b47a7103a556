// Startup handshake of a root: over a pipe it reports success or the reason of its failure to the
// process that created it. A root that reports nothing was killed first, by a limit or a signal.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

// The file descriptors of a root.
inline constexpr int root_listener = 3;
inline constexpr int root_birth = 4;
inline constexpr int root_files = 5;

struct BirthPipe {
  UniqueFd to_hear;
  UniqueFd to_tell;
};
[[nodiscard]] Result<BirthPipe> make_birth_pipe();

[[nodiscard]] Status hear_of_birth(const UniqueFd& to_hear, std::chrono::milliseconds limit);
// Async-signal-safe: a forked child may call it.
void tell_of_birth(int to_tell, Code code, int sys_errno, std::string_view why);

}  // namespace shima::pvas
