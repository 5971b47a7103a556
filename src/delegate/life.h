// Whether another process still lives, whoever has its number by now.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace shima::delegate {

class Life {
 public:
  Life() = default;
  // peer_lost where there is no such process.
  [[nodiscard]] static Result<Life> of(pid_t pid);
  [[nodiscard]] bool has_ended() const;

 private:
  UniqueFd pidfd_;
};

}  // namespace shima::delegate
