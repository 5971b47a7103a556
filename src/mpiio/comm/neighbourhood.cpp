#include "mpiio/comm/neighbourhood.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "base/fault_point.h"
#include "base/log.h"
#include "base/process/numa_domain.h"

namespace shima {
namespace {

// The identity of a node: processes that see the same kernel, host name and process IDs can share
// memory. Time namespaces may differ (ProcessIdentity::clock).
std::uint64_t node_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat namespace_facts{};
  ::stat("/proc/self/ns/pid", &namespace_facts);
  return std::hash<std::string>{}(fmt::format("{}/{}/{}", host, boot, namespace_facts.st_ino));
}

struct Introduction {
  std::uint64_t node = 0;
  int numa_domain = Member::no_domain;
  ProcessIdentity process;
  SharedRef memory;  // of rank 0: that of all ranks, in case they are on one node
};

Result<Neighbourhood> neighbourhood_in(const Gathered<Introduction>& all, int rank) {
  Neighbourhood around;
  around.rank = rank;
  std::map<std::uint64_t, int> nodes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int node = nodes.emplace(all[i].node, static_cast<int>(nodes.size())).first->second;
    around.members.push_back({.node = node, .numa_domain = all[i].numa_domain});
  }
  const int here = around.members[static_cast<std::size_t>(rank)].node;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (around.members[i].node == here) around.local_ranks.push_back(static_cast<int>(i));
  if (nodes.size() > 1) order_by_domain(around.members, around.local_ranks);
  for (const int local : around.local_ranks) {
    if (local == rank) around.local_index = static_cast<int>(around.local_processes.size());
    around.local_processes.push_back(all[static_cast<std::size_t>(local)].process);
  }
  around.node_count = static_cast<int>(nodes.size());
  return around;
}

OfferedMemory make_memory(int member_count) {
  auto buffer = caught([&] { return NodeSegment::make(member_count); });
  OfferedMemory offered;
  offered.making = status_of(buffer);
  if (buffer) offered.made = *std::move(buffer);
  offered.ref = offered.made.ref();
  return offered;
}

// The first rank of each node makes its memory.
Result<OfferedMemory> ask_for_memory(FirstMeetings& meetings, const Result<Neighbourhood>& around,
                                     const Peers& local) {
  OfferedMemory offered;
  if (around && around->local_index == 0)
    offered = make_memory(static_cast<int>(around->local_ranks.size()));
  const auto mine = around ? Result<SharedRef>(offered.ref) : std::unexpected(around.error());
  SHIMA_TRY_ASSIGN(const auto refs, meetings.gather(mine, local));
  offered.ref = refs[static_cast<std::size_t>(around->local_ranks.front())];
  return offered;
}

Result<std::shared_ptr<NodeSegment>> attach_memory(const Result<Neighbourhood>& around,
                                                   const SharedRef& ref) {
  if (!around) return std::unexpected(around.error());
  return caught([&] {
    return NodeSegment::attach(ref, static_cast<int>(around->local_ranks.size()),
                               around->local_index);
  });
}

}  // namespace

Result<Acquaintance> look_around(MPI_Comm comm, FirstMeetings& meetings, const Status& ready) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const bool are_few = meetings.size() <= FirstMeetings::few_ranks;
  Acquaintance met;
  if (ready && are_few && rank == 0) met.memory = make_memory(static_cast<int>(meetings.size()));
  const auto mine = caught([&]() -> Result<Introduction> {
    SHIMA_TRY(ready);
    return Introduction{node_identity(), numa_domain_of(CpuMask::own()).value_or(Member::no_domain),
                        ProcessIdentity::own(), met.memory.ref};
  });
  SHIMA_TRY_ASSIGN(const auto all, meetings.gather(mine, {}));
  const Introduction first = all[0];
  met.few_on_one_node =
      are_few && all.all_of([&](const Introduction& other) { return other.node == first.node; });
  met.memory.ref = first.memory;
  met.around = caught([&] { return neighbourhood_in(all, rank); });
  return met;
}

Result<std::shared_ptr<NodeSegment>> share_memory(FirstMeetings& meetings, Acquaintance& met) {
  const Result<Neighbourhood>& around = met.around;
  const auto local = [&around] { return around ? around->check_local() : Status{}; };
  if (!met.few_on_one_node) {
    met.memory = {};
    SHIMA_TRY_ASSIGN(met.memory, ask_for_memory(meetings, around, local));
  }
  if (!met.memory.made.bytes().empty()) fault_point(FaultPhase::open_made);
  auto attached = attach_memory(around, met.memory.ref);
  fault_point(FaultPhase::open_joined);
  const auto shared = caught([&]() -> Result<std::int32_t> {
    SHIMA_TRY(status_of(around));
    if (attached) return 1;
    log(LogLevel::warn, "opening a file: cannot {} the shared memory of this node: {}",
        met.memory.making ? "attach" : "create",
        describe(met.memory.making ? attached.error() : met.memory.making.error()));
    return 0;
  });
  SHIMA_TRY_ASSIGN(const auto all, meetings.gather(shared, local));
  const bool everywhere = all.all_of([](std::int32_t yes) { return yes != 0; });
  return everywhere ? *std::move(attached) : nullptr;
}

void settle_apart(Neighbourhood& around) {
  int node = 0;
  for (Member& member : around.members) member.node = node++;
  around.node_count = node;
  const ProcessIdentity own = around.local_processes[static_cast<std::size_t>(around.local_index)];
  around.local_ranks = {around.rank};
  around.local_processes = {own};
  around.local_index = 0;
}

}  // namespace shima
