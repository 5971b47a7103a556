#include "simulate/survey.h"

#include <algorithm>
#include <deque>
#include <map>

#include "collective/plan/asked_agents.h"
#include "collective/window/walk.h"
#include "collective/window/window_message.h"
#include "simulate/near_posts.h"

namespace shima::simulate {
namespace {

// What members bring to a window.
struct Brought {
  std::uint64_t bytes = 0;
  std::uint64_t members = 0;
};

// Calls visit(WindowId, Brought) for each window with bytes, in order.
template <class Visit>
void for_each_window(DomainWalk& walk, std::uint64_t window_bytes, Visit visit) {
  while (const auto window = walk.next_window()) {
    Brought brought;
    for (MemberWalk* member : walk.members_in(*window)) {
      brought.bytes += member->bytes_below(window->range.end);
      ++brought.members;
      member->skip_below(window->range.end);
    }
    visit(id_of(*window, window_bytes), brought);
  }
}

std::span<const NearPost> posts_of(std::span<const NearPost> posts, const Subgroup& subgroup) {
  const auto begin = std::ranges::lower_bound(posts, subgroup.begin, {}, &NearPost::index);
  const auto end = std::ranges::lower_bound(posts, subgroup.end, {}, &NearPost::index);
  return {begin, end};
}

// One agent's counts, subgroup by subgroup.
class AgentSurvey {
 public:
  AgentSurvey(const Job& job, int agent)
      : job_(job), domains_(job.plan().agents.domains_of(agent)) {
    counts_.agent = agent;
    counts_.rank = job.plan().agents.rank_of(agent);
    node_ = job.topology().node_of(counts_.rank);
  }

  void visit(const Subgroup& subgroup, std::span<const NearPost> posts) {
    const std::uint64_t window_bytes = job_.plan().window_bytes;
    DomainWalk walk(posts_of(posts, subgroup), job_.layout(), window_bytes, domains_);
    const bool is_near = subgroup.node == node_;
    const std::uint64_t before = counts_.messages;
    for_each_window(walk, window_bytes, [&](const WindowId& id, const Brought& brought) {
      (is_near ? counts_.near_bytes : counts_.far_bytes) += brought.bytes;
      counts_.visits += brought.members;
      std::uint64_t& in_window = messages_[id];
      if (is_near) return;
      ++counts_.messages;
      counts_.most_in_a_window = std::max(counts_.most_in_a_window, ++in_window);
    });
    if (counts_.messages > before) ++counts_.subgroups;
  }
  [[nodiscard]] AgentCounts counts() const {
    AgentCounts counts = counts_;
    counts.windows = messages_.size();
    return counts;
  }

 private:
  const Job& job_;
  std::vector<Domain> domains_;
  int node_ = 0;
  AgentCounts counts_;
  std::map<WindowId, std::uint64_t> messages_;  // in each window
};

// The agents' windows that a master announces, as it keeps them during the call.
struct Served {
  DomainWalk walk;
  DomainWalk ahead;
};

}  // namespace

Result<std::vector<AgentCounts>> survey_agents(const Job& job, std::span<const int> agents,
                                               const Notice& notice) {
  std::deque<AgentSurvey> surveys;
  for (const int agent : agents) surveys.emplace_back(job, agent);
  const Subgroups subgroups(job.topology(), job.plan().subgroup_members);
  int done = 0;
  for (int node = 0; node < job.topology().node_count(); ++node) {
    const NodePosts shown(job, node);
    PostReader reader;
    SHIMA_TRY_ASSIGN(const auto posts, shown.in({{0}, end_of_space}, reader));
    for (int turn = 0; turn < subgroups.count_on(node); ++turn)
      for (AgentSurvey& survey : surveys) survey.visit(subgroups.at(node, turn), posts);
    done += static_cast<int>(job.topology().ranks_on(node).size());
    if (notice) notice(done, job.topology().size());
  }
  std::vector<AgentCounts> counts;
  for (const AgentSurvey& survey : surveys) counts.push_back(survey.counts());
  return counts;
}

Result<int> busiest_master(const Job& job, const Subgroup& subgroup) {
  const Subgroups subgroups(job.topology(), job.plan().subgroup_members);
  const NodePosts shown(job, subgroup.node);
  PostReader reader;
  SHIMA_TRY_ASSIGN(const auto posts, shown.in({{0}, end_of_space}, reader));
  const auto ranks = job.topology().ranks_on(subgroup.node);
  std::size_t most = 0;
  int busiest = 0;
  for (int turn = 0; turn < subgroups.master_count(subgroup); ++turn) {
    const int rank = ranks[static_cast<std::size_t>(subgroups.master_at(subgroup, turn))];
    const std::size_t asked =
        agents_asked(job.plan(), subgroups, rank, posts_of(posts, subgroup), job.layout()).size();
    if (turn == 0 || asked > most) busiest = rank;
    most = std::max(most, asked);
  }
  return busiest;
}

Result<MasterCounts> survey_master(const Job& job, int rank, const Meter& meter) {
  const Plan& plan = job.plan();
  const Subgroups subgroups(job.topology(), plan.subgroup_members);
  const Subgroup subgroup = subgroups.of(rank);
  MasterCounts counts{.rank = rank, .cost = {}};
  std::deque<Served> served;
  const NodePosts shown(job, subgroup.node);
  PostReader reader;
  Result<std::vector<NearPost>> posts;
  counts.cost = meter.once([&] {
    posts = shown.in({{0}, end_of_space}, reader);
    if (!posts) return;
    const auto own = posts_of(*posts, subgroup);
    for (const int agent : agents_asked(plan, subgroups, rank, own, job.layout())) {
      const DomainWalk walk(own, job.layout(), plan.window_bytes, plan.agents.domains_of(agent));
      served.push_back({walk, walk});
      counts.agents_touched += walk.next_window() ? 1 : 0;
    }
  });
  SHIMA_TRY(status_of(posts));
  counts.agents = served.size();
  counts.requests = served.size();
  for (Served& each : served)
    for_each_window(each.walk, plan.window_bytes, [&](const WindowId&, const Brought& brought) {
      ++counts.messages;
      counts.bytes += brought.bytes;
    });
  return counts;
}

}  // namespace shima::simulate
