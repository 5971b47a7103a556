#include "simulate/scale.h"

#include <algorithm>
#include <random>
#include <set>

#include "collective/plan/post_message.h"
#include "group/node_rounds.h"

namespace shima::simulate {
namespace {

constexpr int batches = 15;
constexpr int runs = 40;
constexpr int all_agents_up_to = 64;  // more are sampled
constexpr int most_masters = 3;

// The first, the last, and others at random.
std::vector<int> sample_of(int all, const Sampling& sampling) {
  std::set<int> chosen{0, all - 1};
  std::mt19937_64 random(sampling.seed);
  const auto wanted = static_cast<std::size_t>(std::min(all, std::max(sampling.count, 2)));
  while (chosen.size() < wanted)
    chosen.insert(static_cast<int>(random() % static_cast<std::uint64_t>(all)));
  return {chosen.begin(), chosen.end()};
}

// What a member executes between the program's call and the first byte moved.
MemberCost measure_member(const Job& job, int rank, const Meter& meter) {
  const Access access = access_of(job.workload(), rank);
  volatile std::size_t sink = 0;
  PostWriter writer;
  const auto work = [&] {
    const Post post = make_post(access.file, access.memory);
    const Digest digest = digest_of(post);
    const auto message = writer.message_of(post);
    const Plan plan = job.make_plan();
    const auto agent = plan.agents.agent_at(rank);
    const auto domains = agent ? plan.agents.domains_of(*agent) : std::vector<Domain>();
    const bool is_master = Subgroups(job.topology(), plan.subgroup_members).is_master(rank);
    sink = message.size() + domains.size() + digest.member_count + (is_master ? 1 : 0);
  };
  return {rank, meter.measure(batches, runs, work)};
}

LeaderCost measure_leader(const Job& job, int node, const Meter& meter) {
  const std::vector<Digest> near = job.near_digests(node);
  const int nodes = job.topology().node_count();
  // Joins digests, and tells that no further request comes.
  const int times = job.plan().requests == RequestsTo::touched ? 2 : 1;
  const int sent = times * messages_in_rounds(node, nodes);
  volatile std::uint64_t sink = 0;
  const auto work = [&] {
    Digest all = joined(near);
    NodeRounds rounds(node, nodes);
    while (const auto round = rounds.next())
      if (round->kind == NodeRound::Kind::take || round->kind == NodeRound::Kind::swap)
        all = join(all, job.digest());
    sink = all.len_bytes;
  };
  return {.rank = job.topology().ranks_on(node).front(),
          .cost = meter.measure(batches, runs, work),
          .messages = sent,
          .message_bytes = static_cast<std::uint64_t>(sent / times) * sizeof(Digest)};
}

void measure_nodes(const Job& job, const Sampling& sampling, const Meter& meter, Scale& scale) {
  for (const int node : sample_of(job.topology().node_count(), sampling)) {
    const auto ranks = job.topology().ranks_on(node);
    scale.leaders.push_back(measure_leader(job, node, meter));
    const std::size_t last = ranks.size() - 1;
    for (const std::size_t index : std::set<std::size_t>{last / 2, last})
      if (index > 0) scale.members.push_back(measure_member(job, ranks[index], meter));
  }
}

Status measure_masters(const Job& job, const Sampling& sampling, const Meter& meter,
                       const ScaleNotice& notice, Scale& scale) {
  if (job.topology().node_count() < 2) return {};
  const Subgroups subgroups(job.topology(), job.plan().subgroup_members);
  const Sampling few{std::min(sampling.count, most_masters), sampling.seed};
  int done = 0;
  for (const int node : sample_of(job.topology().node_count(), few)) {
    if (notice) notice("requests of masters", done++, few.count);
    SHIMA_TRY_ASSIGN(const int rank, busiest_master(job, subgroups.at(node, 0)));
    SHIMA_TRY_ASSIGN(auto counts, survey_master(job, rank, meter));
    scale.masters.push_back(counts);
  }
  return {};
}

// How many subgroups elsewhere send a request to an agent.
std::uint64_t requests_to(const Job& job, const AgentCounts& agent) {
  if (job.plan().requests == RequestsTo::touched) return agent.subgroups;
  const Subgroups subgroups(job.topology(), job.plan().subgroup_members);
  const int own = job.topology().node_of(agent.rank);
  std::uint64_t count = 0;
  for (int node = 0; node < job.topology().node_count(); ++node)
    if (node != own) count += static_cast<std::uint64_t>(subgroups.count_on(node));
  return count;
}

// What the sampled agents have, for all agents.
void add_agents(const Job& job, const Scale& scale, Traffic& traffic) {
  if (scale.agent_counts.empty()) return;
  // A write's bytes follow a grant; before a read's, the agent gets the places.
  const double each = traffic.is_read ? 3 : 2;
  const double weight = scale.agents / static_cast<double>(scale.agent_counts.size());
  double near = 0;
  double far = 0;
  double windows = 0;
  for (const AgentCounts& agent : scale.agent_counts) {
    near += static_cast<double>(agent.near_bytes);
    far += static_cast<double>(agent.far_bytes);
    windows += weight * static_cast<double>(agent.windows);
    traffic.visits += weight * static_cast<double>(agent.visits);
    traffic.messages += weight * (each * static_cast<double>(agent.messages) +
                                  static_cast<double>(requests_to(job, agent)));
  }
  traffic.windows = std::max(1.0, windows);
  if (near + far > 0) traffic.far_share = far / (near + far);
}

Traffic traffic_of(const Job& job, const Scale& scale) {
  const Bounds span = post_of(job.workload(), job.workload().ranks - 1).bounds;  // always has bytes
  Traffic traffic{.independent = job.plan().is_own_io(),
                  .is_read = job.workload().direction == Direction::read,
                  .cached = job.workload().cached,
                  .listed = job.workload().shape == Shape::irregular,
                  .pulled = job.plan().near == NearPath::pull,
                  .ranks = scale.ranks,
                  .members = static_cast<int>(scale.digest.member_count),
                  .nodes = scale.nodes,
                  .agents = scale.agents,
                  .subfiles = job.workload().subfiles,
                  .bytes = scale.digest.len_bytes,
                  .pieces = std::max(scale.digest.file_pieces, scale.digest.memory_pieces),
                  .span_bytes = static_cast<std::uint64_t>(span.highest - span.lowest),
                  .window_bytes = job.plan().window_bytes};
  const int members = std::min(job.workload().ranks, job.workload().ranks_per_node);
  traffic.cores_per_node = std::min(job.workload().cores_per_node, members);
  add_agents(job, scale, traffic);
  return traffic;
}

std::vector<int> agents_to_count(int agents, const Sampling& sampling) {
  if (agents == 0) return {};
  return sample_of(agents, agents <= all_agents_up_to ? Sampling{agents, 1} : sampling);
}

}  // namespace

Result<Scale> measure_scale(const Workload& workload, const Machine& machine,
                            const Sampling& sampling, const Meter& meter,
                            const ScaleNotice& notice) {
  SHIMA_TRY(check(workload));
  const auto part = [&](std::string_view doing) {
    return [&notice, doing](int done, int all) {
      if (notice) notice(doing, done, all);
    };
  };
  Scale scale;
  {
    Topology topology;
    const Cost cost = meter.once([&] { topology = topology_of(workload); });
    scale.topology_bytes = cost.kept_bytes;
  }
  const Job job(workload, part("digests"));
  scale.ranks = job.topology().size();
  scale.nodes = job.topology().node_count();
  scale.digest = job.digest();
  scale.choice = job.plan().choice;
  scale.path = job.plan().path;
  scale.window_bytes = job.plan().window_bytes;
  scale.agents = job.plan().agents.count();
  scale.post_bytes = bytes_of_post(post_of(workload, workload.ranks - 1));
  measure_nodes(job, sampling, meter, scale);
  if (scale.agents > 0) {
    SHIMA_TRY_ASSIGN(scale.agent_counts,
                     survey_agents(job, agents_to_count(scale.agents, sampling), part("agents")));
    SHIMA_TRY(measure_masters(job, sampling, meter, notice, scale));
  }
  scale.traffic = traffic_of(job, scale);
  scale.estimate = estimate(scale.traffic, machine);
  return scale;
}

std::uint64_t bytes_of_post(const Post& post) {
  PostWriter writer;
  return writer.message_of(post).size() + writer.len_bytes();
}

double median_ns(std::span<const MemberCost> members) {
  std::vector<double> costs;
  for (const MemberCost& member : members) costs.push_back(member.cost.cpu_ns);
  if (costs.empty()) return 0;
  std::ranges::nth_element(costs, costs.begin() + std::ssize(costs) / 2);
  return costs[costs.size() / 2];
}

}  // namespace shima::simulate
