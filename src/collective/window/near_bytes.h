// How a server gets the bytes of members on its node into one of its windows, and out of it.
//
// With pull, the server accesses their memory. With pack, it opens the window in shared memory, and
// they copy (collective/window/window_filler.h). A server is an agent, or a subgroup master; it has
// two windows.
#pragma once

#include <vector>

#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "collective/window/window_message.h"
#include "group/node/shared_windows.h"
#include "ipc/staging_pool.h"

namespace shima {

class NearBytes {
 public:
  NearBytes(PathContext& context, WindowRole role) : context_(context), role_(role) {}

  // Allocates the windows.
  [[nodiscard]] Status start();
  // Whether members copy, from and to the image.
  [[nodiscard]] bool packs() const { return context_.plan.near == NearPath::pack; }
  // The memory of a window.
  [[nodiscard]] std::byte* image(int side) const {
    return staging().data() + static_cast<std::size_t>(side) * context_.plan.window_bytes;
  }
  // Starts to collect the members' bytes of a window, or to hand them out, up to `window.range.end`
  // (writes: collect). Moves the members' walks past it.
  [[nodiscard]] Status begin(int side, int agent, const Window& window,
                             std::span<MemberWalk* const> members);
  // The same with the places of a window's runs, without the image, and at once; only with pull.
  [[nodiscard]] Status move_runs(std::span<const RunBytes> runs,
                                 std::span<MemberWalk* const> members);
  // Whether the members have copied.
  [[nodiscard]] bool is_done(int side) const;
  // An error if a member failed to provide its bytes.
  [[nodiscard]] Status outcome(int side) const;
  // No further window follows.
  void close();

 private:
  // Between the members' memory and the server's.
  [[nodiscard]] Direction reach() const {
    return context_.direction == Direction::write ? Direction::read : Direction::write;
  }
  [[nodiscard]] Status touch(int side, const TargetRange& range, std::uint64_t len_bytes);
  [[nodiscard]] Staging& staging() const {
    return role_ == WindowRole::agent ? context_.staging.agent : context_.staging.master;
  }

  PathContext& context_;
  WindowRole role_;
  std::vector<int> present_;  // indexes of the members with bytes in the window that is opened
};

}  // namespace shima
