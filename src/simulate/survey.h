// What agents and subgroup masters do in a simulated call, counted in the walks that they make.
//
// An agent and a subgroup meet in windows: one message for each window of the agent in which the
// subgroup has bytes. So both sides are counted by walking the subgroup's posts through the agent's
// domains (DomainWalk), as a subgroup master does to announce windows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/plan/subgroups.h"
#include "simulate/job.h"
#include "simulate/meter.h"

namespace shima::simulate {

struct AgentCounts {
  int agent = 0;
  int rank = 0;
  std::uint64_t subgroups = 0;         // on other nodes, with bytes in its domains
  std::uint64_t windows = 0;           // with bytes
  std::uint64_t messages = 0;          // windows of subgroups on other nodes
  std::uint64_t most_in_a_window = 0;  // messages
  std::uint64_t visits = 0;            // of members, in each window with bytes of theirs
  std::uint64_t near_bytes = 0;        // from members of its node
  std::uint64_t far_bytes = 0;
};

// Counts for several agents in one pass over all ranks.
[[nodiscard]] Result<std::vector<AgentCounts>> survey_agents(const Job& job,
                                                             std::span<const int> agents,
                                                             const Notice& notice = {});

struct MasterCounts {
  int rank = 0;
  std::uint64_t agents = 0;          // on other nodes that it collects for
  std::uint64_t agents_touched = 0;  // of these, with bytes of its subgroup
  std::uint64_t requests = 0;        // that it sends
  std::uint64_t messages = 0;        // windows with bytes
  std::uint64_t bytes = 0;
  Cost cost;  // of decoding posts and finding all first windows; its memory for all agents
};

// The master of a subgroup that sends the most requests.
[[nodiscard]] Result<int> busiest_master(const Job& job, const Subgroup& subgroup);

[[nodiscard]] Result<MasterCounts> survey_master(const Job& job, int rank, const Meter& meter);

}  // namespace shima::simulate
