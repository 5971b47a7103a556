// What a new root says to who has made it, on a pipe: that it has begun, or why it cannot. If it
// says nothing it was ended before, by a limit or by somebody.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::pvas {

// A root's files.
inline constexpr int root_listener = 3;
inline constexpr int root_birth = 4;
inline constexpr int root_files = 5;

struct BirthPipe {
  UniqueFd to_hear;
  UniqueFd to_tell;
};
[[nodiscard]] Result<BirthPipe> make_birth_pipe();

[[nodiscard]] Status hear_of_birth(const UniqueFd& to_hear, std::chrono::milliseconds limit);
// Allocates nothing, so that a forked child may call it.
void tell_of_birth(int to_tell, Code code, int sys_errno, std::string_view why);

}  // namespace shima::pvas
