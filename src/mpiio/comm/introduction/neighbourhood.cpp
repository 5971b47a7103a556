#include "mpiio/comm/introduction/neighbourhood.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "base/process/numa_domain.h"
#include "ipc/wait.h"

namespace shima {
namespace {

// Processes that see the same kernel, host name and process IDs can share memory. Time namespaces
// may differ (ProcessIdentity::clock).
std::uint64_t node_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat namespace_facts{};
  ::stat("/proc/self/ns/pid", &namespace_facts);
  return std::hash<std::string>{}(fmt::format("{}/{}/{}", host, boot, namespace_facts.st_ino));
}

}  // namespace

Place Place::own() {
  return {node_identity(),
          {ProcessIdentity::own(), numa_domain_of(CpuMask::own()).value_or(Member::no_domain)}};
}

Topology topology_of(std::size_t ranks, FunctionRef<Place(std::size_t)> place_of) {
  std::vector<Member> members;
  members.reserve(ranks);
  std::map<std::uint64_t, int> nodes;
  for (std::size_t i = 0; i < ranks; ++i) {
    const Place place = place_of(i);
    const int node = nodes.emplace(place.node, static_cast<int>(nodes.size())).first->second;
    members.push_back({.node = node, .numa_domain = place.process.numa_domain});
  }
  return Topology(members);
}

Status Neighbourhood::check_local() const {
  for (std::size_t i = 0; i < near.size(); ++i)
    if (near[i].process.pid != 0 && static_cast<int>(i) != index())
      SHIMA_TRY(check_alive(near[i].process));
  return {};
}

void Neighbourhood::settle_apart() {
  near.front() = near[static_cast<std::size_t>(index())];
  near.resize(1);
  topology.set_apart();
}

}  // namespace shima
