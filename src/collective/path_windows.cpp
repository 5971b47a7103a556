// Agents collect windows and hand them out: from members near them, who copy in parallel and
// without system calls where pieces are small (pack), and from subgroups on other nodes (message).
//
// Every member repeats a round: copy to or from newly opened windows that contain its bytes; if it
// is an agent or a subgroup master, move its own windows a step further. When a round finds no
// work, it sleeps until something changes, or ends when a member has quit: messages in flight are
// then completed by the messenger (Channel::wait_for_transfers). All roles run in the same thread,
// so no step may block.
#include <sched.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/agent_server.h"
#include "collective/io_node/io_node_call.h"
#include "collective/plan/asked_agents.h"
#include "collective/request_phase.h"
#include "collective/subgroup_master.h"
#include "collective/window/path_context.h"
#include "collective/window/window_filler.h"

namespace shima {
namespace {

// What this member does in a transfer.
struct Roles {
  std::deque<WindowFiller> fillers;    // one for each server whose windows may have its bytes
  std::optional<IoNodeCall> io_nodes;  // of a subgroup master, if I/O nodes are the agents
  std::optional<AgentServer> agent;
  std::optional<SubgroupMaster> master;
  std::optional<RequestPhase> phase;

  [[nodiscard]] bool done() const {
    return std::ranges::all_of(fillers, &WindowFiller::done) && (!agent || agent->done()) &&
           (!master || master->done()) && (!phase || phase->done()) &&
           (!io_nodes || io_nodes->done());
  }
  // Whether it waits for messages; otherwise it waits for near members only.
  [[nodiscard]] bool awaits_messages() const {
    return (master && !master->done()) || (phase && !phase->done()) ||
           (io_nodes && !io_nodes->done()) || (agent && !agent->done() && agent->may_have_guests());
  }
  [[nodiscard]] Result<bool> step() {
    bool busy = false;
    for (WindowFiller& filler : fillers) busy = filler.step() || busy;
    if (io_nodes) {
      SHIMA_TRY_ASSIGN(const bool moved, io_nodes->step());
      busy = busy || moved;
    }
    if (agent) {
      SHIMA_TRY_ASSIGN(const bool moved, agent->step());
      busy = busy || moved;
    }
    if (master) {
      SHIMA_TRY_ASSIGN(const bool moved, master->step());
      busy = busy || moved;
    }
    if (phase) {
      SHIMA_TRY_ASSIGN(const bool moved, phase->step(!master || master->has_asked()));
      busy = busy || moved;
    }
    return busy;
  }
};

class Assignment {
 public:
  explicit Assignment(PathContext& context)
      : context_(context),
        topology_(context.channel.topology()),
        agents_(context.plan.agents),
        subgroups_(topology_, context.plan.subgroup_members),
        node_(topology_.node_of(context.channel.rank())),
        subgroup_(subgroups_.of(context.channel.rank())),
        asks_touched_(context.plan.path == Path::message &&
                      context.plan.requests == RequestsTo::touched) {}

  [[nodiscard]] Status assign(Roles& roles) {
    const auto agent = agents_.agent_at(context_.channel.rank());
    if (agent) {
      auto domains = agents_.domains_of(*agent);
      if (!domains.empty()) {
        roles.agent.emplace(context_, *agent, std::move(domains), requests());
        SHIMA_TRY(roles.agent->start());
      }
    }
    const int rank = context_.channel.rank();
    if (is_master(rank)) {
      if (agents_.are_io_nodes()) SHIMA_TRY(join_io_nodes(roles, rank));
      roles.master.emplace(context_, posts_of_subgroup(), asked_by(rank));
      SHIMA_TRY(roles.master->start());
    }
    if (asks_touched_ && (roles.master || context_.channel.near_index() == 0))
      roles.phase.emplace(context_, roles.master.has_value(), near_masters());
    if (context_.plan.near == NearPath::pack) add_fillers(roles);
    return {};
  }

 private:
  [[nodiscard]] Status join_io_nodes(Roles& roles, int rank) const {
    int subgroups = 0;
    for (int node = 0; node < topology_.node_count(); ++node)
      subgroups += subgroups_.count_on(node);
    roles.io_nodes.emplace(context_, subgroups);
    context_.messenger = &roles.io_nodes->messenger();
    return roles.io_nodes->join(asked_by(rank));
  }

  // How many requests come to an agent on this node, if all subgroups elsewhere send one.
  [[nodiscard]] std::optional<int> requests() const {
    if (asks_touched_) return std::nullopt;
    int count = 0;
    for (int node = 0; node < topology_.node_count(); ++node)
      if (node != node_) count += subgroups_.count_on(node);
    return count;
  }

  [[nodiscard]] int near_masters() const {
    int count = 0;
    for (int turn = 0; turn < subgroups_.count_on(node_); ++turn)
      count += subgroups_.master_count(subgroups_.at(node_, turn));
    return count;
  }

  // Whether a member of this subgroup may collect for agents on other nodes. Only the masters know
  // which agents the subgroup touches.
  [[nodiscard]] bool is_master(int rank) const {
    return asks_touched_ ? subgroups_.is_master(rank) : !asked_by(rank).empty();
  }

  [[nodiscard]] std::vector<int> asked_by(int rank) const {
    return agents_asked(context_.plan, subgroups_, rank, posts_of_subgroup(),
                        context_.file.layout());
  }

  [[nodiscard]] std::span<const NearPost> posts_of_subgroup() const {
    const auto begin =
        std::ranges::lower_bound(context_.near, subgroup_.begin, {}, &NearPost::index);
    const auto end = std::ranges::lower_bound(context_.near, subgroup_.end, {}, &NearPost::index);
    return {begin, end};
  }

  void add_fillers(Roles& roles) const {
    const AgentRange near = agents_.agents_on(node_);
    for (int agent = near.begin; agent < near.end; ++agent)
      if (!agents_.domains_of(agent).empty())
        roles.fillers.emplace_back(
            context_, WindowServer{topology_.index_of(agents_.rank_of(agent)), WindowRole::agent},
            agent);
    for (int turn = 0; turn < subgroups_.master_count(subgroup_); ++turn) {
      const int index = subgroups_.master_at(subgroup_, turn);
      if (is_master(topology_.ranks_on(node_)[static_cast<std::size_t>(index)]))
        roles.fillers.emplace_back(context_, WindowServer{index, WindowRole::master}, std::nullopt);
    }
  }

  PathContext& context_;
  const Topology& topology_;
  const AgentMap& agents_;
  Subgroups subgroups_;
  int node_;
  Subgroup subgroup_;
  bool asks_touched_;
};

// Sleeps until something may have changed since `state` of the windows.
class Pause {
 public:
  explicit Pause(PathContext& context)
      : context_(context), sleeper_(context.channel.windows()->sleeper()) {}

  [[nodiscard]] Status wait(bool for_messages, std::uint32_t state) {
    fault_point(FaultPhase::wait);
    if (!for_messages) return context_.channel.windows()->sleep(sleeper_, state);
    const ScopedTimer timer(context_.counters.wait_ns);
    const auto longest = context_.messenger->pause();
    if (longest.count() == 0) {
      sched_yield();
    } else {
      context_.disk.sleep(longest);
    }
    if (context_.plan.agents.are_io_nodes()) help_mpi();
    // No message may be under way: then the messenger does not notice that a member was lost.
    return sleeper_.check_peers();
  }
  void moved() {
    if (Messenger* const messenger = context_.messenger) messenger->moved();
  }

 private:
  // With I/O nodes the messenger is another one. Their messages wake this member often.
  void help_mpi() {
    constexpr auto interval = std::chrono::microseconds(200);
    const auto& progress = context_.channel.windows()->hooks().progress;
    const auto now = Clock::now();
    if (!progress || now - last_help_ < interval) return;
    last_help_ = now;
    progress();
  }

  PathContext& context_;
  Sleeper sleeper_;
  Clock::time_point last_help_{};
};

Status repeat_rounds(PathContext& context, Roles& roles) {
  Pause pause(context);
  while (true) {
    const std::uint32_t state = context.channel.windows()->state();
    SHIMA_TRY_ASSIGN(const bool busy, roles.step());
    if (roles.done()) return {};
    if (busy) {
      pause.moved();
    } else if (context.channel.transfer_quit()) {
      return {};
    } else {
      SHIMA_TRY(pause.wait(roles.awaits_messages(), state));
    }
    if (roles.io_nodes) SHIMA_TRY(roles.io_nodes->check_nodes());
  }
}

Result<FileOffset> run_windows(PathContext& context) {
  Roles roles;
  SHIMA_TRY(Assignment(context).assign(roles));
  SHIMA_TRY(repeat_rounds(context, roles));
  if (roles.agent) SHIMA_TRY(roles.agent->stop());
  for (const WindowFiller& filler : roles.fillers) SHIMA_TRY(filler.status());
  const FileOffset seen_here = roles.agent ? roles.agent->end_of_file() : no_end_of_file;
  return std::min(seen_here, roles.master ? roles.master->end_of_file() : no_end_of_file);
}

}  // namespace

Result<FileOffset> run_pack(PathContext& context) {
  ++context.counters.path_pack;
  return run_windows(context);
}

Result<FileOffset> run_message(PathContext& context) {
  ++context.counters.path_message;
  return run_windows(context);
}

}  // namespace shima
