#include "mpiio/comm/communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fault_point.h"
#include "base/log.h"
#include "group/node_channel.h"
#include "mpiio/comm/agree_over.h"
#include "mpiio/comm/attendance.h"
#include "mpiio/comm/first_meetings.h"
#include "mpiio/comm/message_channel.h"
#include "mpiio/comm/neighbourhood.h"
#include "mpiio/comm/node_services.h"
#include "mpiio/comm/private_comm.h"
#include "mpiio/comm/progress.h"
#include "mpiio/mpi/await.h"
#include "observe/board.h"

namespace shima {
namespace {

// The state kept with a communicator. A duplicate gets its own, on the same ground.
//
// Creating it is a collective call before there is a channel, under the same contract: a rank that
// fails between two meetings brings the error to the next one (mpiio/comm/first_meetings.h).
struct CommState {
  std::shared_ptr<const NodeGround> node;        // all members on one node
  std::shared_ptr<const MessageGround> message;  // otherwise
  std::shared_ptr<NodeSegment> segment;          // keeps the node's memory alive in both cases
  std::uint64_t key = 1;
  std::uint64_t opens = 0;
  std::uint64_t duplicates = 0;
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

struct Abilities {
  std::int32_t cores = 1;
  std::int32_t can_pull = 0;
  NodeAddresses addresses;
  std::array<char, 64> host{};  // its name; a longer one is left out
};

std::array<char, 64> own_host() {
  std::array<char, 64> name{};
  if (::gethostname(name.data(), name.size()) != 0 || name.back() != '\0') name = {};
  return name;
}

// To `shima top`.
void show_hosts_of(const Gathered<Abilities>& all) {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto host = all[i].host;
    const std::string_view name(host.data(), ::strnlen(host.data(), host.size()));
    if (!name.empty() && !names.contains(name)) names.emplace(name);
  }
  show_hosts(std::vector<std::string>(names.begin(), names.end()));
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

// `members`: of all nodes.
std::shared_ptr<NodeGround> ground_on(const CommState& state, const Neighbourhood& around,
                                      std::span<const Member> members) {
  auto ground = std::make_shared<NodeGround>();
  ground->segment = state.segment;
  ground->staging = std::make_shared<StagingPool>();
  for (const ProcessIdentity& process : around.local_processes)
    ground->near_pids.push_back(process.pid);
  ground->topology = Topology(members);
  ground->node = ground->topology.node_of(around.rank);
  ground->one_space = state.segment->one_space();
  ground->hooks = hooks_for(state.segment);
  return ground;
}

Status settle_on_one_node(CommState& state, Neighbourhood& around) {
  for (Member& member : around.members) member.cores = state.segment->usable_cores();
  state.node = ground_on(state, around, around.members);
  return {};
}

std::shared_ptr<const NodeGround> near_ground(const CommState& state, const Neighbourhood& around,
                                              const Gathered<Abilities>& all) {
  std::vector<Member> members = around.members;
  for (std::size_t i = 0; i < all.size(); ++i) members[i].cores = all[i].cores;
  return ground_on(state, around, members);
}

// The addresses of the nodes other than rank 0's.
std::vector<NodeAddresses> other_nodes(const Neighbourhood& around,
                                       const Gathered<Abilities>& all) {
  std::map<int, NodeAddresses> nodes;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (around.members[i].node != around.members[0].node)
      nodes.emplace(around.members[i].node, all[i].addresses);
  const auto found = std::views::values(nodes);
  return {found.begin(), found.end()};
}

// The members that share this rank's memory, with words for the liveness service.
WatchedNode watched_node(const CommState& state, const Neighbourhood& around) {
  WatchedNode node{
      {}, static_cast<std::size_t>(around.local_index), &state.segment->lost_word(), state.segment};
  for (std::size_t i = 0; i < around.local_ranks.size(); ++i)
    node.members.push_back({static_cast<std::uint32_t>(around.local_ranks[i]),
                            around.local_processes[i],
                            &state.segment->left_word(static_cast<int>(i))});
  return node;
}

Status settle_on_several_nodes(FirstMeetings& meetings, CommState& state, Neighbourhood& around,
                               Status& last) {
  auto ground = caught([&]() -> Result<std::shared_ptr<MessageGround>> {
    auto made = std::make_shared<MessageGround>();
    if (state.segment) return made;
    settle_apart(around);
    SHIMA_TRY_ASSIGN(state.segment, own_memory());
    return made;
  });
  const auto mine = caught([&]() -> Result<Abilities> {
    if (!ground) return std::unexpected(ground.error());
    return Abilities{.cores = state.segment->usable_cores(),
                     .can_pull = state.segment->can_pull() ? 1 : 0,
                     .addresses = shown(own_addresses()),
                     .host = own_host()};
  });
  const auto local = [&around] { return around.check_local(); };
  SHIMA_TRY_ASSIGN(const auto all, meetings.gather(mine, local));
  MessageGround& made = **ground;
  made.can_pull = all.all_of([](const Abilities& a) { return a.can_pull != 0; });
  last = caught([&]() -> Status {
    made.near = near_ground(state, around, all);
    show_hosts_of(all);
    return {};
  });
  auto place = caught([&]() -> Result<NodePlace> {
    SHIMA_TRY(last);
    return NodePlace{around.rank, other_nodes(around, all),
                     static_cast<std::size_t>(around.node_count), watched_node(state, around)};
  });
  SHIMA_TRY(join_services(meetings, local, std::move(place), made, last));
  state.message = *std::move(ground);
  return {};
}

// Which ranks of this rank's node are bound to one domain each, if some are.
std::string domains_text(const Neighbourhood& around) {
  std::string text;
  int last = Member::no_domain;
  for (const int rank : around.local_ranks) {
    const int domain = around.members[static_cast<std::size_t>(rank)].numa_domain;
    if (domain == Member::no_domain) return {};
    text += fmt::format("{}{}", text.empty() ? "" : domain == last ? " " : ", ", rank);
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
      around.members.size(), around.node_count, domains_text(around),
      shares_memory ? "shared memory on each node" : "no shared memory, messages only", reach());
}

// What remains after the last meeting that needs the MPI's messages.
struct Introduced {
  Status last;  // the error of this rank alone
  bool one_node = false;
};

// Introduces the ranks to each other. The result is the same on all ranks, but for `last`.
Result<Introduced> fill_state(MPI_Comm comm, FirstMeetings& meetings, const Status& ready,
                              CommState* state) {
  SHIMA_TRY_ASSIGN(Acquaintance met, look_around(comm, meetings, ready));
  fault_point(FaultPhase::open_introduced);
  SHIMA_TRY_ASSIGN(state->segment, share_memory(meetings, met));
  Neighbourhood& around = *met.around;
  if (state->segment) {
    fault_point(FaultPhase::open_shared);
    // The segment does not know its processes yet.
    SHIMA_TRY(state->segment->introduce(
        {.progress = progress_mpi, .peers = [&around] { return around.check_local(); }}));
  }
  const bool shares_memory = state->segment != nullptr;
  Introduced result{.last = {}, .one_node = shares_memory && around.node_count == 1};
  if (!result.one_node) SHIMA_TRY(settle_on_several_nodes(meetings, *state, around, result.last));
  if (result.last)
    result.last = caught([&]() -> Status {
      announce(around, *state, shares_memory);
      return result.one_node ? settle_on_one_node(*state, around) : Status{};
    });
  return result;
}

// Over the node's memory, where that reaches all ranks: a meeting of the MPI takes several times as
// long.
Status agree_at_the_end(MPI_Comm comm, const CommState& state, const Introduced& introduced) {
  constexpr const char* doing = "introducing ranks to each other";
  Peers peers;
  if (state.segment) peers = first_hooks(state.segment.get()).peers;
  if (state.message) peers = state.message->peers();
  if (!introduced.one_node) return agree_over(comm, introduced.last, doing, peers);
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const std::uint64_t mine = verdict_word(introduced.last, rank);
  SHIMA_TRY_ASSIGN(const auto all,
                   state.segment->meet({mine, 0}, first_hooks(state.segment.get())));
  return verdict_of(all.first, introduced.last, doing);
}

Result<CommState*> make_state(MPI_Comm comm) {
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
  if (last) std::ignore = made->release();
  const Status all = agree_at_the_end(comm, *state, introduced);
  if (all) return state;
  if (last) PMPI_Comm_delete_attr(comm, state_keyval());
  return std::unexpected(all.error());
}

Result<CommState*> state_of(MPI_Comm comm) {
  void* known = nullptr;
  int found = 0;
  SHIMA_TRY(checked(PMPI_Comm_get_attr(comm, state_keyval(), &known, &found),
                    "reading Shima's state of a communicator"));
  if (found != 0) return static_cast<CommState*>(known);
  return make_state(comm);
}

}  // namespace

Result<std::unique_ptr<Channel>> make_channel(MPI_Comm comm) {
  // Threads often open files on MPI_COMM_SELF at the same time. There every step is local, so that
  // a lock cannot deadlock. On larger communicators, MPI requires the program to order the calls.
  static std::mutex turn;
  int size = 0;
  PMPI_Comm_size(comm, &size);
  const auto alone = size == 1 ? std::unique_lock(turn) : std::unique_lock<std::mutex>();
  SHIMA_TRY_ASSIGN(CommState* const state, state_of(comm));
  const std::uint64_t key = child_key(state->key, ++state->opens, 0);
  if (state->node) {
    SHIMA_TRY_ASSIGN(auto channel, NodeChannel::make(state->node, key));
    return std::unique_ptr<Channel>(std::move(channel));
  }
  duplicates_for_channel = true;
  auto made = caught([&] { return MessageChannel::make(state->message, comm, key); });
  duplicates_for_channel = false;
  SHIMA_TRY_ASSIGN(auto channel, std::move(made));
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace shima
