#include "mpiio/comm/node_services.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "mpiio/comm/introduction/agree_over.h"
#include "mpiio/comm/introduction/byte_message.h"
#include "mpiio/mpi/private_comm.h"

namespace shima {
namespace {

constexpr const char* doing = "introducing nodes to each other";
constexpr std::size_t most_host_bytes = 4096;  // more are not shown (observe/board_page.h)

// A rank that exits after MPI_Finalize is not lost, also if the program has freed no communicator.
void leave_at_exit() {
  static const int registered = std::atexit([] {
    if (!has_world()) leave_all();
  });
  static_cast<void>(registered);
}

std::array<char, 64> own_host() {
  std::array<char, 64> name{};
  if (::gethostname(name.data(), name.size()) != 0 || name.back() != '\0') name = {};
  return name;
}

// The message of a leader to rank 0.
struct Report {
  std::uint64_t code = 0;  // of an error
  NodeFacts facts;
};

// The facts of all nodes.
struct AllFacts {
  std::vector<NodeFacts> facts;  // by the number of the node
  int failed_rank = 0;           // whose error is the result
};

Status report(FirstMessages& messages, const Neighbourhood& around, const Result<NodeFacts>& mine) {
  if (!around.is_leader()) return {};
  const Report report{mine ? 0 : static_cast<std::uint64_t>(mine.error().code),
                      mine ? *mine : NodeFacts{}};
  return messages.send_value(0, report, [&] { return around.check_local(); });
}

// What rank 0 does: it hears all leaders, whatever has failed.
Status hear_reports(FirstMessages& messages, const Neighbourhood& around,
                    const Result<NodeFacts>& mine, AllFacts& all) {
  const Topology& topology = around.topology;
  Status worst = caught([&]() -> Status {
    SHIMA_TRY(status_of(mine));
    all.facts.resize(static_cast<std::size_t>(topology.node_count()));
    all.facts.front() = *mine;
    return {};
  });
  for (int node = 1; node < topology.node_count(); ++node) {
    Report report;
    const int leader = topology.ranks_on(node).front();
    Status heard = messages.receive_value(leader, report, [&] { return around.check_local(); });
    if (is_loss(heard)) return heard;
    if (heard && report.code != 0)
      heard = fail_settled(static_cast<Code>(report.code), 0,
                           [&] { return fmt::format("{}: rank {} failed", doing, leader); });
    if (!worst) continue;
    worst = heard;
    if (worst) all.facts[static_cast<std::size_t>(node)] = report.facts;
    if (!worst && report.code != 0) all.failed_rank = leader;
  }
  return worst;
}

std::vector<NodeAddresses> addresses_of_others(std::span<const NodeFacts> facts) {
  std::vector<NodeAddresses> others;
  for (const NodeFacts& node : facts.subspan(1)) others.push_back(node.addresses);
  return others;
}

std::vector<std::string> hosts_of(std::span<const NodeFacts> facts) {
  std::set<std::string, std::less<>> names;
  std::size_t bytes = 0;
  for (const NodeFacts& node : facts) {
    const std::string_view name(node.host.data(), ::strnlen(node.host.data(), node.host.size()));
    if (name.empty() || names.contains(name)) continue;
    bytes += name.size() + 1;
    if (bytes > most_host_bytes) break;
    names.emplace(name);
  }
  return {names.begin(), names.end()};
}

// The message to all: this, the rows of the topology with the cores, and the names of hosts, each
// with its end.
struct ToldHead {
  ServiceAddress pointer;
  ServiceAddress hub;
  std::uint64_t can_pull = 0;
};

std::vector<std::byte> written(const NodesTold& told) {
  const ToldHead head{told.pointer, told.hub, told.can_pull ? 1U : 0U};
  const std::vector<std::int32_t> rows = told.topology.row_words();
  std::string names;
  for (const std::string& name : told.hosts) names.append(name).push_back('\0');
  std::vector<std::byte> message;
  put_values(message, std::span(&head, 1));
  put_list(message, std::span(rows));
  put_list(message, std::span<const char>(names));
  return message;
}

Result<NodesTold> read(std::span<const std::byte> message, const Topology& placement) {
  ToldHead head;
  std::vector<std::int32_t> rows;
  std::vector<char> names;
  if (!take_values(message, std::span(&head, 1)) || !take_list(message, rows) ||
      !take_list(message, names))
    return fail(Code::internal, "a message of rank 0 was not understood");
  NodesTold told{placement, head.can_pull != 0, head.pointer, head.hub, {}};
  SHIMA_TRY(told.topology.read_rows(rows));
  for (auto at = names.begin(); at != names.end();) {
    const auto end = std::find(at, names.end(), '\0');
    told.hosts.emplace_back(at, end);
    at = end == names.end() ? end : end + 1;
  }
  return told;
}

}  // namespace

NodeFacts NodeFacts::of(const NodeSegment& segment) {
  return {.cores = segment.usable_cores(),
          .can_pull = segment.can_pull() ? 1 : 0,
          .addresses = shown(own_addresses()),
          .host = own_host()};
}

// What rank 0 does with the facts.
NodesTold NodeServices::begin(std::span<const NodeFacts> facts, const Topology& placement) {
  NodesTold told;
  told.topology = placement;
  told.hosts = hosts_of(facts);
  std::vector<int> cores;
  for (const NodeFacts& node : facts) cores.push_back(node.cores);
  told.topology.set_node_cores(cores);
  told.can_pull =
      std::ranges::all_of(facts, [](const NodeFacts& node) { return node.can_pull != 0; });
  const auto addresses = listening_addresses(own_addresses(), addresses_of_others(facts));
  if (auto pointers = PointerService::start(addresses)) {
    pointers_ = *std::move(pointers);
    told.pointer = pointers_->address();
  } else {
    log(LogLevel::warn, "opening a file: shared file pointers are not available: {}",
        describe(pointers.error()));
  }
  hub_ = Liveness::start_hub(addresses, facts.size());
  if (hub_) told.hub = hub_->address();
  return told;
}

NodeServices::~NodeServices() {
  if (hub_) hub_->leave();
}

Result<NodesTold> NodeServices::start(FirstMeetings& meetings, FirstMessages& messages,
                                      const Neighbourhood& around, const Result<NodeFacts>& mine) {
  const bool is_first = around.rank == 0;
  AllFacts all;
  const Status heard = caught([&] {
    return is_first ? hear_reports(messages, around, mine, all) : report(messages, around, mine);
  });
  if (is_loss(heard)) return std::unexpected(heard.error());
  const auto message = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(heard);
    return is_first ? written(begin(all.facts, around.topology)) : std::vector<std::byte>{};
  });
  const auto local = [&] { return around.check_local(); };
  const auto told = meetings.broadcast(message, all.failed_rank, local);
  if (is_loss(status_of(told))) return std::unexpected(told.error());
  return caught([&]() -> Result<NodesTold> {
    SHIMA_TRY(status_of(message));
    SHIMA_TRY(status_of(told));
    return read(*told, around.topology);
  });
}

void NodeServices::join(const NodesTold& told, WatchedNode watched, MessageGround& ground) {
  leave_at_exit();
  if (told.pointer.endpoint_count != 0) {
    ground.pointer_service = pointers_;
    if (!pointers_) ground.pointer_client = std::make_shared<PointerClient>(told.pointer);
  }
  ground.liveness = Liveness::join(std::move(watched), told.hub, std::move(hub_));
}

}  // namespace shima
