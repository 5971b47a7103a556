#include "mpiio/comm/communicator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <ranges>
#include <string>
#include <vector>

#include "base/fault_point.h"
#include "base/log.h"
#include "group/node_channel.h"
#include "mpiio/comm/attendance.h"
#include "mpiio/comm/await.h"
#include "mpiio/comm/message_channel.h"
#include "mpiio/comm/private_comm.h"
#include "mpiio/comm/progress.h"

namespace shima {
namespace {

// Kept with a communicator; a duplicate gets its own, on the same ground.
struct CommState {
  std::shared_ptr<const NodeGround> node;        // all members on one node
  std::shared_ptr<const MessageGround> message;  // otherwise
  std::shared_ptr<NodeSegment> segment;          // keeps the node's memory alive in both cases
  std::uint64_t key = 1;
  std::uint64_t opens = 0;
  std::uint64_t duplicates = 0;
};

// A number that all members compute alike from a parent's number and how many children came before.
std::uint64_t child_key(std::uint64_t parent, std::uint64_t serial, std::uint64_t kind) {
  std::uint64_t x = parent * 0x9e3779b97f4a7c15U + serial * 2 + kind;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  x ^= x >> 31;
  return x == 0 ? 1 : x;
}

int copy_state(MPI_Comm, int, void*, void* from, void* to, int* flag) {
  auto* parent = static_cast<CommState*>(from);
  auto* child = new CommState(*parent);
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

// What tells two nodes apart: processes that see the same kernel, host name and process numbers can
// share memory.
std::uint64_t node_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat namespace_facts{};
  ::stat("/proc/self/ns/pid", &namespace_facts);
  return std::hash<std::string>{}(fmt::format("{}/{}/{}", host, boot, namespace_facts.st_ino));
}

struct Abilities {
  std::int32_t cores = 1;
  std::int32_t can_pull = 0;
  NodeAddresses addresses;
};

template <class T>
Result<std::vector<T>> gather_all(MPI_Comm comm, const T& mine, const Peers& peers) {
  struct Moved {
    T mine;
    std::vector<T> all;
  };
  int size = 0;
  PMPI_Comm_size(comm, &size);
  auto moved = std::make_unique<Moved>(mine, std::vector<T>(static_cast<std::size_t>(size)));
  MPI_Request request = MPI_REQUEST_NULL;
  Status done = checked(PMPI_Iallgather(&moved->mine, sizeof(T), MPI_BYTE, moved->all.data(),
                                        sizeof(T), MPI_BYTE, comm, &request),
                        "introducing ranks to each other");
  if (done) done = await(request, "introducing ranks to each other", peers);
  if (done) return std::move(moved->all);
  std::ignore = moved.release();  // the MPI may still write to it
  return std::unexpected(std::move(done).error());
}

Result<bool> all_agree(MPI_Comm comm, bool mine, const Peers& peers) {
  SHIMA_TRY_ASSIGN(const auto all, gather_all(comm, static_cast<std::int32_t>(mine), peers));
  return std::ranges::all_of(all, [](std::int32_t yes) { return yes != 0; });
}

// Who runs where, before anything is shared.
struct Neighbourhood {
  int rank = 0;
  std::vector<Member> members;
  std::vector<int> local_ranks;  // of this rank's node
  int local_index = 0;
  int node_count = 0;

  // An error once a process of this rank's node has ended.
  [[nodiscard]] Status check_local() const {
    for (const int local : local_ranks)
      SHIMA_TRY(check_alive(members[static_cast<std::size_t>(local)].pid));
    return {};
  }
};

Result<Neighbourhood> look_around(MPI_Comm comm) {
  Neighbourhood around;
  PMPI_Comm_rank(comm, &around.rank);
  const Introduction mine{node_identity(), ::getpid()};
  SHIMA_TRY_ASSIGN(const auto all, all_started_under_shima(comm) ? gather_all(comm, mine, {})
                                                                 : meet_all(comm, mine));
  std::map<std::uint64_t, int> nodes;
  for (const Introduction& other : all) {
    const int node = nodes.emplace(other.node, static_cast<int>(nodes.size())).first->second;
    around.members.push_back({node, other.pid, 1});
  }
  const int here = around.members[static_cast<std::size_t>(around.rank)].node;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (around.members[i].node != here) continue;
    if (static_cast<int>(i) == around.rank)
      around.local_index = static_cast<int>(around.local_ranks.size());
    around.local_ranks.push_back(static_cast<int>(i));
  }
  around.node_count = static_cast<int>(nodes.size());
  return around;
}

// The memory that this rank's node shares; null, on all ranks alike, where some node cannot share
// any.
Result<std::shared_ptr<NodeSegment>> share_memory(MPI_Comm comm, const Neighbourhood& around) {
  const int local_count = static_cast<int>(around.local_ranks.size());
  const auto local = [&around] { return around.check_local(); };
  SharedBuffer made;  // the first rank of each node makes it; open until all have mapped it
  if (around.local_index == 0) {
    if (auto buffer = NodeSegment::make(local_count)) {
      made = *std::move(buffer);
    } else {
      log(LogLevel::warn, "no memory for the ranks of this node to share: {}",
          describe(buffer.error()));
    }
    fault_point(FaultPhase::open_made);
  }
  SHIMA_TRY_ASSIGN(const auto refs, gather_all(comm, made.ref(), local));
  auto attached = NodeSegment::attach(refs[static_cast<std::size_t>(around.local_ranks.front())],
                                      local_count, around.local_index);
  fault_point(FaultPhase::open_joined);
  if (!attached)
    log(LogLevel::warn, "no shared memory with the other ranks of this node: {}",
        describe(attached.error()));
  SHIMA_TRY_ASSIGN(const bool all_attached, all_agree(comm, attached.has_value(), local));
  return all_attached ? *attached : nullptr;
}

WaitHooks hooks_for(const std::weak_ptr<NodeSegment>& segment, bool may_spin) {
  return {.progress = progress_mpi,
          .peers = [segment]() -> Status {
            const auto alive = segment.lock();
            return alive ? alive->check_peers() : Status{};
          },
          .may_spin = may_spin};
}

Status settle_on_one_node(CommState& state, Neighbourhood around) {
  auto ground = std::make_shared<NodeGround>();
  ground->segment = state.segment;
  ground->staging = std::make_shared<StagingPool>();
  ground->members = std::move(around.members);
  ground->one_space = state.segment->one_space();
  for (Member& member : ground->members) member.cores = state.segment->usable_cores();
  ground->hooks =
      hooks_for(state.segment, state.segment->member_count() <= state.segment->usable_cores());
  state.node = std::move(ground);
  return {};
}

// Rank 0 keeps the shared file pointers of all files. `others`: the nodes but rank 0's.
Status settle_shared_pointers(MPI_Comm comm, int rank, std::span<const NodeAddresses> others,
                              MessageGround& ground) {
  PointerAddress address;
  if (rank == 0) {
    auto service = PointerService::start(listening_addresses(own_addresses(), others));
    if (service) {
      ground.pointer_service = *std::move(service);
      address = ground.pointer_service->address();
    } else {
      log(LogLevel::warn, "no shared file pointers: {}", describe(service.error()));
    }
  }
  MPI_Request request = MPI_REQUEST_NULL;
  SHIMA_TRY(checked(PMPI_Ibcast(&address, sizeof address, MPI_BYTE, 0, comm, &request),
                    "introducing the keeper of shared file pointers"));
  SHIMA_TRY(await(request, "introducing the keeper of shared file pointers"));
  if (address.endpoint_count == 0) {
    ground.pointer_service.reset();
  } else if (rank != 0) {
    ground.pointer_client = std::make_shared<PointerClient>(address);
  }
  return {};
}

Status settle_on_several_nodes(MPI_Comm comm, CommState& state, const Neighbourhood& around) {
  auto ground = std::make_shared<MessageGround>();
  ground->staging = std::make_shared<StagingPool>();
  ground->members = around.members;
  Abilities mine{.addresses = shown(own_addresses())};
  if (state.segment) {
    mine.cores = state.segment->usable_cores();
    mine.can_pull = state.segment->can_pull() ? 1 : 0;
  }
  SHIMA_TRY_ASSIGN(const auto all, gather_all(comm, mine, [&] { return around.check_local(); }));
  ground->can_pull = std::ranges::all_of(all, [](const Abilities& a) { return a.can_pull != 0; });
  std::map<int, NodeAddresses> other_nodes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (around.members[i].node != around.members[0].node)
      other_nodes.emplace(around.members[i].node, all[i].addresses);
    ground->members[i].cores = all[i].cores;
    if (!state.segment) ground->members[i].node = static_cast<int>(i);
  }
  ground->one_space = state.segment && state.segment->one_space();
  const auto others = std::views::values(other_nodes);
  SHIMA_TRY(settle_shared_pointers(comm, around.rank, std::vector(others.begin(), others.end()),
                                   *ground));
  state.message = std::move(ground);
  return {};
}

void announce(const Neighbourhood& around, const CommState& state) {
  if (around.rank != 0) return;
  const auto reach = [&] {
    if (state.segment && state.segment->one_space()) return "directly, in one address space";
    if (state.segment && state.segment->can_pull()) return "with process_vm_readv/writev";
    return "through shared windows (process_vm_readv is forbidden here)";
  };
  log(LogLevel::info, "{} ranks on {} nodes; {}; ranks reach each other's memory {}",
      around.members.size(), around.node_count,
      state.segment ? "shared memory on each node" : "no shared memory: everything by messages",
      reach());
}

Result<std::unique_ptr<CommState>> make_state(MPI_Comm comm) {
  auto state = std::make_unique<CommState>();
  fault_point(FaultPhase::open_enter);
  SHIMA_TRY_ASSIGN(Neighbourhood around, look_around(comm));
  fault_point(FaultPhase::open_introduced);
  SHIMA_TRY_ASSIGN(state->segment, share_memory(comm, around));
  if (state->segment) SHIMA_TRY(state->segment->introduce(hooks_for(state->segment, false)));
  announce(around, *state);
  if (state->segment && around.node_count == 1) {
    SHIMA_TRY(settle_on_one_node(*state, std::move(around)));
  } else {
    SHIMA_TRY(settle_on_several_nodes(comm, *state, around));
  }
  return state;
}

Result<CommState*> state_of(MPI_Comm comm) {
  void* known = nullptr;
  int found = 0;
  SHIMA_TRY(
      checked(PMPI_Comm_get_attr(comm, state_keyval(), &known, &found), "asking a communicator"));
  if (found != 0) return static_cast<CommState*>(known);
  SHIMA_TRY_ASSIGN(std::unique_ptr<CommState> made, make_state(comm));
  SHIMA_TRY(checked(PMPI_Comm_set_attr(comm, state_keyval(), made.get()),
                    "remembering a communicator's node"));
  return made.release();
}

}  // namespace

Result<std::unique_ptr<Channel>> make_channel(MPI_Comm comm) {
  // Threads like to open files of their own on MPI_COMM_SELF at once. There every step is local, so
  // that taking turns cannot block; on larger communicators MPI asks the program for an order.
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
  SHIMA_TRY_ASSIGN(auto channel, MessageChannel::make(state->message, comm, key));
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace shima
