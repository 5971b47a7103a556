// One call at one number of ranks: what planning it costs, and what moves.
//
// All digests are made and joined. Costs and messages are those of samples: members, leaders and
// masters of the first, the last and some further nodes; the first, the last and some further
// agents. Ranks that differ only in their number do the same work, so few stand for all.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "simulate/machine.h"
#include "simulate/survey.h"

namespace shima::simulate {

struct MemberCost {
  int rank = 0;
  Cost cost;  // of post, digest, plan, and finding its own part
};

struct LeaderCost {
  int rank = 0;
  Cost cost;         // of joining the digests of its node, and those of other leaders
  int messages = 0;  // that it sends to other leaders
  std::uint64_t message_bytes = 0;
};

struct Scale {
  int ranks = 0;
  int nodes = 0;
  Digest digest;
  Choice choice;
  Path path = Path::pull;  // unless every rank does its own I/O
  std::uint64_t window_bytes = 0;
  int agents = 0;
  std::uint64_t post_bytes = 0;     // the encoded post of one member
  std::int64_t topology_bytes = 0;  // that each rank keeps
  std::vector<MemberCost> members;  // no leaders
  std::vector<LeaderCost> leaders;
  std::vector<MasterCounts> masters;
  std::vector<AgentCounts> agent_counts;
  Traffic traffic;
  Estimate estimate;
};

// Told what is done, and how far: part of all ranks.
using ScaleNotice = std::function<void(std::string_view doing, int done, int all)>;

struct Sampling {
  int count = 6;  // of each kind
  std::uint64_t seed = 1;
};

[[nodiscard]] Result<Scale> measure_scale(const Workload& workload, const Machine& machine,
                                          const Sampling& sampling, const Meter& meter,
                                          const ScaleNotice& notice = {});

// The bytes of a post as it is first shown to near members.
[[nodiscard]] std::uint64_t bytes_of_post(const Post& post);

// The cost that most samples stay below.
[[nodiscard]] double median_ns(std::span<const MemberCost> members);

}  // namespace shima::simulate
