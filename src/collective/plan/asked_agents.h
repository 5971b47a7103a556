// The agents on other nodes that a subgroup asks to take part in a call: all, or those in whose
// domains it has bytes. The latter are found without a visit to the others: from the members' next
// byte to its owner, then past the end of the owner's domain. Pure.
#pragma once

#include <span>
#include <vector>

#include "collective/plan/plan.h"
#include "collective/plan/post.h"
#include "collective/plan/subgroups.h"

namespace shima {

// The agents in whose domains some members have bytes, in ascending order.
[[nodiscard]] std::vector<int> touched_agents(std::span<const NearPost> posts, const Layout& layout,
                                              const AgentMap& agents);

// The agents to which the member `rank`, as a master, sends requests. `posts`: of its subgroup; not
// used if all agents are asked.
[[nodiscard]] std::vector<int> agents_asked(const Plan& plan, const Subgroups& subgroups, int rank,
                                            std::span<const NearPost> posts, const Layout& layout);

}  // namespace shima
