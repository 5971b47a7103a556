// The data that all paths of a collective call use.
#pragma once

#include <span>

#include "base/process/aside.h"
#include "collective/plan/plan.h"
#include "collective/plan/post.h"
#include "group/channel.h"
#include "ipc/staging_pool.h"
#include "observe/counters.h"
#include "store/striped/logical_file.h"

namespace shima {

// The windows of this member; kept until all agree, because others may access them.
struct WindowStaging {
  Staging agent;
  Staging master;
};

struct PathContext {
  Direction direction;
  const Plan& plan;
  const Post& mine;
  std::span<const NearPost> near;  // an agent's: of the near members with bytes in its domains
  Channel& channel;
  LogicalFile& file;
  Counters& counters;
  WindowStaging& staging;
  Aside& disk;           // writes and reads windows while this thread exchanges messages
  Messenger* messenger;  // to agents that are not near, and from them; null if there are none

  // The domains of the agent that this member is; none if it is no agent.
  [[nodiscard]] std::vector<Domain> my_domains() const {
    const auto agent = plan.agents.agent_at(channel.rank());
    return agent ? plan.agents.domains_of(*agent) : std::vector<Domain>{};
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
