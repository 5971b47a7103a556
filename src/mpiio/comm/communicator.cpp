#include "mpiio/comm/communicator.h"

#include <fmt/format.h>

#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <vector>

#include "base/fault_point.h"
#include "base/log.h"
#include "group/node_channel.h"
#include "mpiio/comm/introduction/agree_over.h"
#include "mpiio/comm/introduction/attendance.h"
#include "mpiio/comm/introduction/first_meetings.h"
#include "mpiio/comm/introduction/node_memory.h"
#include "mpiio/comm/message_channel.h"
#include "mpiio/comm/node_services.h"
#include "mpiio/comm/progress.h"
#include "mpiio/mpi/await.h"
#include "mpiio/mpi/duplicate.h"
#include "observe/board.h"

namespace shima {
namespace {

// The state kept with a communicator. A duplicate gets its own, on the same ground.
//
// Creating it is a collective call before there is a channel, under the same contract: a rank that
// fails between two meetings brings the error to the next one
// (mpiio/comm/introduction/first_meetings.h).
struct CommState {
  std::shared_ptr<const NodeGround> node;        // all members on one node
  std::shared_ptr<const MessageGround> message;  // otherwise
  std::shared_ptr<NodeSegment> segment;          // keeps the node's memory alive in both cases
  std::uint64_t key = 1;
  std::uint64_t opens = 0;
  std::uint64_t duplicates = 0;

  // Of the next file. The same on all members.
  [[nodiscard]] std::uint64_t next_file_key();
};

// A number that is the same on all members: it depends on the parent's number and on how many
// children came before.
std::uint64_t child_key(std::uint64_t parent, std::uint64_t serial, std::uint64_t kind) {
  std::uint64_t x = parent * 0x9e3779b97f4a7c15U + serial * 2 + kind;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return x == 0 ? 1 : x;
}

std::uint64_t CommState::next_file_key() { return child_key(key, ++opens, 0); }

// Whether this thread duplicates a communicator for a channel. Such a duplicate needs no state, and
// MPI treats a lack of memory for the state as fatal.
thread_local bool duplicates_for_channel = false;

int copy_state(MPI_Comm, int, void*, void* from, void* to, int* flag) {
  *flag = 0;
  if (duplicates_for_channel) return MPI_SUCCESS;
  auto* parent = static_cast<CommState*>(from);
  auto* child = new (std::nothrow) CommState(*parent);
  if (child == nullptr) return MPI_ERR_NO_MEM;
  child->key = child_key(parent->key, ++parent->duplicates, 1);
  child->opens = child->duplicates = 0;
  *static_cast<void**>(to) = child;
  *flag = 1;
  return MPI_SUCCESS;
}

int delete_state(MPI_Comm, int, void* state, void*) {
  delete static_cast<CommState*>(state);
  return MPI_SUCCESS;
}

int state_keyval() {
  static const int keyval = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(copy_state, delete_state, &made, nullptr);
    return made;
  }();
  return keyval;
}

Result<std::shared_ptr<NodeSegment>> own_memory() {
  SHIMA_TRY_ASSIGN(const SharedBuffer memory, NodeSegment::make(1));
  SHIMA_TRY_ASSIGN(auto segment, NodeSegment::attach(memory.ref(), 1, 0));
  SHIMA_TRY(segment->introduce({}));
  return segment;
}

// Allocates nothing. The hooks must not outlive the segment.
WaitHooks first_hooks(const NodeSegment* segment) {
  return {.progress = progress_mpi, .peers = [segment] { return segment->check_peers(); }};
}

WaitHooks hooks_for(const std::shared_ptr<NodeSegment>& all) {
  const std::weak_ptr<NodeSegment> segment = all;
  return {.progress = progress_mpi,
          .peers = [segment]() -> Status {
            const auto alive = segment.lock();
            return alive ? alive->check_peers() : Status{};
          },
          .tasks_per_core = tasks_per_core(all->member_count(), all->usable_cores()),
          .one_group = all->one_group()};
}

std::shared_ptr<NodeGround> ground_on(const CommState& state, const Neighbourhood& around,
                                      const Topology& topology) {
  auto ground = std::make_shared<NodeGround>();
  ground->segment = state.segment;
  ground->staging = std::make_shared<StagingPool>();
  for (const NearProcess& near : around.near) ground->near_pids.push_back(near.process.pid);
  ground->topology = topology;
  ground->node = topology.node_of(around.rank);
  ground->one_space = state.segment->one_space();
  ground->hooks = hooks_for(state.segment);
  return ground;
}

void settle_on_one_node(CommState& state, const Neighbourhood& around) {
  auto ground = ground_on(state, around, around.topology);
  ground->topology.set_cores(state.segment->usable_cores());
  state.node = std::move(ground);
}

// The members that share this rank's memory, with words for the liveness service.
WatchedNode watched_node(const CommState& state, const Neighbourhood& around) {
  WatchedNode node{
      {}, static_cast<std::size_t>(around.index()), &state.segment->lost_word(), state.segment};
  const NodeRanks ranks = around.near_ranks();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    node.members.push_back({static_cast<std::uint32_t>(ranks[i]), around.near[i].process,
                            &state.segment->left_word(static_cast<int>(i))});
  return node;
}

// The error of this rank alone, or of all.
Status settle_on_several_nodes(FirstMeetings& meetings, FirstMessages& messages, CommState& state,
                               const Neighbourhood& around, const Status& ready) {
  const auto mine = caught([&]() -> Result<NodeFacts> {
    SHIMA_TRY(ready);
    if (!state.segment) {
      SHIMA_TRY_ASSIGN(state.segment, own_memory());
    }
    return NodeFacts::of(*state.segment);
  });
  NodeServices services;
  const auto told = services.start(meetings, messages, around, mine);
  if (!is_loss(status_of(told))) SHIMA_TRY(status_of(mine));
  SHIMA_TRY(status_of(told));
  return caught([&]() -> Status {
    auto made = std::make_shared<MessageGround>();
    made->can_pull = told->can_pull;
    made->near = ground_on(state, around, told->topology);
    show_hosts(told->hosts);
    services.join(*told, watched_node(state, around), *made);
    state.message = std::move(made);
    return {};
  });
}

// Which ranks of this rank's node are bound to one NUMA domain each, if all are.
std::string domains_text(const Neighbourhood& around) {
  std::string text;
  int last = Member::no_domain;
  const NodeRanks ranks = around.near_ranks();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int domain = around.near[i].numa_domain;
    if (domain == Member::no_domain) return {};
    text += fmt::format("{}{}", text.empty() ? "" : domain == last ? " " : ", ", ranks[i]);
    last = domain;
  }
  return fmt::format("ranks of a NUMA domain here: {}; ", text);
}

void announce(const Neighbourhood& around, const CommState& state, bool shares_memory) {
  if (around.rank != 0) return;
  const auto reach = [&] {
    if (state.segment->one_space()) return "directly, in one address space";
    if (state.segment->can_pull()) return "with process_vm_readv/writev";
    return "through shared windows (process_vm_readv is forbidden here)";
  };
  log(LogLevel::info, "{} ranks on {} nodes; {}{}; ranks reach each other's memory {}",
      around.topology.size(), around.topology.node_count(), domains_text(around),
      shares_memory ? "shared memory on each node" : "no shared memory, messages only", reach());
}

// What remains after the last meeting that needs the MPI's messages.
struct Introduced {
  Status last;  // the error of this rank alone
  bool one_node = false;
  MPI_Comm spare = MPI_COMM_NULL;  // a duplicate, for the first channel over several nodes
};

// The segment does not know its processes yet.
Status introduce_processes(const CommState& state, const Neighbourhood& around) {
  fault_point(FaultPhase::open_shared);
  return state.segment->introduce(
      {.progress = progress_mpi, .peers = [&around] { return around.check_local(); }});
}

// What ranks of several nodes, or without shared memory, do. `last`: of this rank alone.
Result<Introduced> settle_by_messages(MPI_Comm comm, FirstMeetings& meetings, CommState& state,
                                      Acquaintance& met, Status last) {
  if (!met.messages) {
    SHIMA_TRY_ASSIGN(FirstMessages made, FirstMessages::begin(comm, last, {}));
    met.messages.emplace(std::move(made));
  }
  FirstMessages& messages = *met.messages;
  last = settle_on_several_nodes(meetings, messages, state, met.around, last);
  return Introduced{last, false, messages.take_comm()};
}

// Introduces the ranks to each other. The result is the same on all ranks, but for `last`.
Result<Introduced> fill_state(MPI_Comm comm, FirstMeetings& meetings, const Status& ready,
                              CommState* state) {
  Status last;
  SHIMA_TRY_ASSIGN(Acquaintance met, look_around(comm, meetings, ready, last));
  fault_point(FaultPhase::open_introduced);
  SHIMA_TRY_ASSIGN(state->segment, share_memory(comm, met, last));
  const bool shares_memory = state->segment != nullptr;
  const bool one_node = shares_memory && met.around.topology.node_count() == 1;
  last = caught([&]() -> Status {
    if (shares_memory) return introduce_processes(*state, met.around);
    met.around.settle_apart();
    return {};
  });
  if (!last && (one_node || is_loss(last))) {
    if (met.messages) met.messages->give_up();
    return std::unexpected(last.error());  // on all ranks of the node
  }
  Introduced result;
  result.one_node = one_node;
  if (!one_node) {
    SHIMA_TRY_ASSIGN(result, settle_by_messages(comm, meetings, *state, met, last));
  }
  if (result.last)
    result.last = caught([&]() -> Status {
      announce(met.around, *state, shares_memory);
      if (one_node) settle_on_one_node(*state, met.around);
      return {};
    });
  return result;
}

// Over the node's memory: a meeting of the MPI takes several times as long.
Status agree_on_one_node(MPI_Comm comm, NodeSegment& segment, const Status& last) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const std::uint64_t mine = verdict_word(last, rank);
  SHIMA_TRY_ASSIGN(const auto all, segment.meet({mine, 0}, first_hooks(&segment)));
  return verdict_of(all.first, last, "introducing ranks to each other");
}

// Over the communicator: a rank with an error may have no duplicate.
Result<std::unique_ptr<MessageChannel>> agree_on_first_channel(MPI_Comm comm, CommState& state,
                                                               const Introduced& introduced) {
  Peers peers;
  if (state.segment) peers = first_hooks(state.segment.get()).peers;
  if (state.message) peers = state.message->peers();
  auto made = caught([&]() -> Result<std::unique_ptr<MessageChannel>> {
    SHIMA_TRY(introduced.last);
    return MessageChannel::make(state.message, introduced.spare, state.next_file_key());
  });
  return MessageChannel::agree(std::move(made), introduced.spare, comm, peers);
}

struct FoundState {
  CommState* state = nullptr;
  std::unique_ptr<MessageChannel> first;  // the channel of the file for which it was made
};

// Whether all have got through is agreed on as late as possible: with the first file's channel,
// where the ranks are on several nodes.
Result<FoundState> make_state(MPI_Comm comm) {
  fault_point(FaultPhase::open_enter);
  SHIMA_TRY(caught([comm] { return check_attendance(comm); }));
  auto made =
      caught([]() -> Result<std::unique_ptr<CommState>> { return std::make_unique<CommState>(); });
  SHIMA_TRY_ASSIGN(FirstMeetings meetings, FirstMeetings::begin(comm));
  CommState* const state = made ? made->get() : nullptr;
  SHIMA_TRY_ASSIGN(Introduced introduced, fill_state(comm, meetings, status_of(made), state));
  Status& last = introduced.last;
  if (last)
    last = checked(PMPI_Comm_set_attr(comm, state_keyval(), state),
                   "attaching Shima's state to a communicator");
  if (is_loss(last)) return std::unexpected(last.error());
  const bool is_attached = last.has_value();
  if (is_attached) std::ignore = made->release();
  FoundState found{state, nullptr};
  const Status all = [&]() -> Status {
    if (introduced.one_node) return agree_on_one_node(comm, *state->segment, last);
    SHIMA_TRY_ASSIGN(found.first, agree_on_first_channel(comm, *state, introduced));
    return {};
  }();
  if (all) return found;
  if (is_attached) PMPI_Comm_delete_attr(comm, state_keyval());
  return std::unexpected(all.error());
}

Result<FoundState> state_of(MPI_Comm comm) {
  void* known = nullptr;
  int found = 0;
  SHIMA_TRY(checked(PMPI_Comm_get_attr(comm, state_keyval(), &known, &found),
                    "reading Shima's state of a communicator"));
  if (found != 0) return FoundState{static_cast<CommState*>(known), nullptr};
  return make_state(comm);
}

Result<std::unique_ptr<MessageChannel>> make_message_channel(MPI_Comm comm, CommState& state) {
  const Peers peers = state.message->peers();
  const std::uint64_t key = state.next_file_key();
  duplicates_for_channel = true;
  const auto own = caught([&] { return duplicate(comm, peers); });
  duplicates_for_channel = false;
  SHIMA_TRY(status_of(own));
  auto made = caught([&] { return MessageChannel::make(state.message, *own, key); });
  return MessageChannel::agree(std::move(made), *own, *own, peers);
}

}  // namespace

Result<std::unique_ptr<Channel>> make_channel(MPI_Comm comm) {
  // Threads often open files on MPI_COMM_SELF at the same time. There every step is local, so that
  // a lock cannot deadlock. On larger communicators, MPI requires the program to order the calls.
  static std::mutex turn;
  int size = 0;
  PMPI_Comm_size(comm, &size);
  const auto alone = size == 1 ? std::unique_lock(turn) : std::unique_lock<std::mutex>();
  SHIMA_TRY_ASSIGN(FoundState found, state_of(comm));
  if (found.first) return std::unique_ptr<Channel>(std::move(found.first));
  CommState& state = *found.state;
  if (state.node) return NodeChannel::make(state.node, state.next_file_key());
  return make_message_channel(comm, state);
}

}  // namespace shima
