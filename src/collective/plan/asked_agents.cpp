#include "collective/plan/asked_agents.h"

#include <algorithm>

#include "layout/layout.h"

namespace shima {

std::vector<int> touched_agents(std::span<const NearPost> posts, const Layout& layout,
                                const AgentMap& agents) {
  std::vector<int> touched;
  const std::span<const Domain> parts = agents.parts();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    std::vector<SubfileCursor> cursors;
    for (const NearPost& near : posts)
      if (near.post.len_bytes > 0) cursors.emplace_back(near.post.file, layout, parts[part]);
    const TargetOffset end = parts[part].range.end;
    while (true) {
      TargetOffset next = end;
      for (const SubfileCursor& cursor : cursors) next = std::min(next, cursor.next());
      if (next >= end) break;
      const AgentMap::Owner owner = agents.owner_of(part, next);
      touched.push_back(owner.agent);
      for (SubfileCursor& cursor : cursors) cursor.skip_below(owner.end);
    }
  }
  std::ranges::sort(touched);
  const auto repeated = std::ranges::unique(touched);
  touched.erase(repeated.begin(), repeated.end());
  return touched;
}

std::vector<int> agents_asked(const Plan& plan, const Subgroups& subgroups, int rank,
                              std::span<const NearPost> posts, const Layout& layout) {
  const Subgroup subgroup = subgroups.of(rank);
  const AgentRange near = plan.agents.agents_on(subgroup.node);
  const auto serves = [&](int agent) {
    return (agent < near.begin || agent >= near.end) &&
           subgroups.master_for(subgroup, agent) == rank;
  };
  std::vector<int> asked;
  if (plan.requests == RequestsTo::touched) {
    asked = touched_agents(posts, layout, plan.agents);
    std::erase_if(asked, [&](int agent) { return !serves(agent); });
    return asked;
  }
  for (int agent = 0; agent < plan.agents.count(); ++agent)
    if (serves(agent) && !plan.agents.domains_of(agent).empty()) asked.push_back(agent);
  return asked;
}

}  // namespace shima
