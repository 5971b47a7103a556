// What a member holds for one collective call of a test, without a file of the program around it.
#pragma once

#include <functional>

#include "base/process/aside.h"
#include "collective/run.h"

namespace shima {

struct MemberCall {
  // `settle_in`: runs in the disk's thread before its first work.
  explicit MemberCall(
      Tuning its_tuning, std::function<void()> settle_in = [] {})
      : tuning(its_tuning), disk(std::move(settle_in)) {}

  // Refers to this.
  [[nodiscard]] CollectiveCall on(LogicalFile& file, Channel& channel, Direction direction) {
    return {.direction = direction,
            .channel = channel,
            .file = file,
            .counters = counters,
            .tuning = tuning,
            .posts = posts,
            .caches = Caches::one,
            .has_moved_own = false,
            .disk = disk,
            .history = history};
  }

  Counters counters;
  const Tuning tuning;
  Aside disk;
  KnownPosts posts;
  History history;
};

}  // namespace shima
