// The data that all paths of a collective call use.
#pragma once

#include <span>

#include "collective/plan.h"
#include "collective/post.h"
#include "group/channel.h"
#include "ipc/staging_pool.h"
#include "observe/counters.h"
#include "store/striped/logical_file.h"

namespace shima {

struct PathContext {
  Direction direction;
  const Plan& plan;
  std::span<const Post> posts;
  Channel& channel;
  LogicalFile& file;
  Counters& counters;
  Staging& staging;  // an agent's; kept until all agree: others may read it

  [[nodiscard]] const Post& mine() const { return posts[static_cast<std::size_t>(channel.rank())]; }
  // The agent that this member is; null if it is none.
  [[nodiscard]] const Agent* my_agent() const {
    for (const Agent& agent : plan.agents)
      if (agent.rank == channel.rank()) return &agent;
    return nullptr;
  }
};

// Each path moves the bytes of one collective call and returns where it found the end of the file
// (the largest offset if it did not reach the end). A member may throw or return an error at any
// point; it then quits the transfer, so that a path that waits for other members ends when the
// channel reports that one has quit.
[[nodiscard]] Result<FileOffset> run_single_copy(PathContext& context);
[[nodiscard]] Result<FileOffset> run_pull(PathContext& context);
[[nodiscard]] Result<FileOffset> run_pack(PathContext& context);
[[nodiscard]] Result<FileOffset> run_message(PathContext& context);

inline constexpr FileOffset no_end_of_file{std::numeric_limits<std::int64_t>::max()};

}  // namespace shima
