// The hosts file, the cores of a host as text, and which task runs where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "dse/plan/hosts_file.h"
#include "dse/plan/placement.h"

namespace shima::dse {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DseHosts, LinesAreHostsWithSlots) {
  const auto hosts = parse_hosts(
      "# two racks\nnode1 slots=4\n\n  node2.example.org\t# all cores\r\n10.0.0.7 slots=1", "h");
  ASSERT_TRUE(hosts) << describe(hosts.error());
  EXPECT_THAT(*hosts,
              ElementsAre(Host{"node1", 4}, Host{"node2.example.org", 0}, Host{"10.0.0.7", 1}));
}

TEST(DseHosts, BadLinesAreNamed) {
  const auto why = [](std::string_view text) {
    const auto hosts = parse_hosts(text, "HOSTS");
    return hosts ? "accepted" : std::string(hosts.error().what);
  };
  EXPECT_THAT(why("a\nb slots=0"), HasSubstr("HOSTS, line 2: 'slots=0'"));
  EXPECT_THAT(why("a slots=x"), HasSubstr("line 1: 'slots=x'"));
  EXPECT_THAT(why("a 4"), HasSubstr("'4' after the host is not slots=N"));
  EXPECT_THAT(why("a slots=1 slots=2"), HasSubstr("line 1"));
  EXPECT_THAT(why("a\n\na"), HasSubstr("line 3: host a is in line 1 already"));
  EXPECT_THAT(why("-oProxyCommand=x"), HasSubstr("is not the name of a host"));
  EXPECT_THAT(why("a;b"), HasSubstr("is not the name of a host"));
  EXPECT_THAT(why("# none\n"), HasSubstr("HOSTS has no hosts"));
}

// `packages` with two shared caches each, `cores` to a cache.
Machine machine(int packages, int cores) {
  Machine made;
  for (int package = 0; package < packages; ++package)
    for (int cache = 0; cache < 2; ++cache)
      for (int core = 0; core < cores; ++core) {
        const int number = static_cast<int>(made.size());
        made.push_back({{package, package, 2 * package + cache, number}, {number, number + 64}});
      }
  return made;
}

TEST(DseMachine, TextMakesTheSameAgain) {
  const Machine made = machine(2, 2);
  const auto again = parse_machine(describe(made));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, made);
  for (const char* text :
       {"", "0.0.0:1", "0.0.0.0", "0.0.0.0:", "0.0.0.0:x", "0.0.0.0:99999", "0.0.0.0:-1"})
    EXPECT_FALSE(parse_machine(text)) << text;
}

void each_seat_is_taken_once(const std::vector<HostRoom>& hosts, const std::vector<Seat>& seats) {
  std::map<int, int> on_host;
  std::map<std::pair<int, int>, int> on_core;
  for (const Seat& seat : seats) {
    ++on_host[seat.host];
    ++on_core[{seat.host, seat.core}];
  }
  for (const auto& [host, count] : on_host) {
    const HostRoom& room = hosts[static_cast<std::size_t>(host)];
    const int cores = static_cast<int>(room.machine.size());
    EXPECT_LE(count, room.slots);
    for (int core = 0; core < cores; ++core)
      EXPECT_LE((on_core[{host, core}]), (count + cores - 1) / cores) << "core " << core;
  }
}

std::vector<Seat> place(std::string_view text, const std::vector<HostRoom>& hosts) {
  const auto topology = Topology::parse(text, 0);
  EXPECT_TRUE(topology) << describe(topology.error());
  const auto seats = place_tasks(*topology, hosts);
  EXPECT_EQ(static_cast<int>(seats.size()), topology->tasks());
  each_seat_is_taken_once(hosts, seats);
  return seats;
}

int between_hosts(std::string_view text, const std::vector<HostRoom>& hosts) {
  return separation_of(*Topology::parse(text, 0), hosts, place(text, hosts)).on_other_hosts;
}

TEST(DsePlacement, RingStaysInOrder) {
  const std::vector<HostRoom> hosts{{4, machine(1, 2)}, {4, machine(1, 2)}};
  EXPECT_THAT(place("ring:8", hosts), ElementsAre(Seat{0, 0}, Seat{0, 1}, Seat{0, 2}, Seat{0, 3},
                                                  Seat{1, 0}, Seat{1, 1}, Seat{1, 2}, Seat{1, 3}));
  EXPECT_EQ(between_hosts("ring:8", hosts), 2);
}

// The rows of a mesh that is wider than high are cut, not its columns.
TEST(DsePlacement, GridsAreCutAcrossTheirShortSide) {
  const std::vector<HostRoom> two{{8, machine(2, 2)}, {8, machine(2, 2)}};
  EXPECT_EQ(between_hosts("mesh:2x8", two), 2);
  EXPECT_EQ(between_hosts("mesh:8x2", two), 2);
  EXPECT_EQ(between_hosts("torus:2x8", two), 4);
  EXPECT_EQ(between_hosts("hypercube:4", two), 8);
  const std::vector<HostRoom> four(4, {16, machine(2, 4)});
  EXPECT_EQ(between_hosts("mesh:8x8", four), 16);
}

// Two cliques whose members alternate: by number, almost all neighbors would be apart.
TEST(DsePlacement, GraphsAreCutWhereTheyAreThin) {
  std::string text;
  for (int task = 0; task < 8; ++task) {
    text += std::to_string(task);
    for (int other = task % 2; other < 8; other += 2)
      if (other != task) text += " to" + std::to_string(other) + "=" + std::to_string(other);
    text += "\n";
  }
  text += "8 first=0 second=1\n";
  const auto graph = Topology::parse_graph(text, 9, "cliques");
  ASSERT_TRUE(graph);
  const std::vector<HostRoom> hosts{{5, machine(1, 3)}, {4, machine(1, 2)}};
  const auto seats = place_tasks(*graph, hosts);
  each_seat_is_taken_once(hosts, seats);
  const Separation separation = separation_of(*graph, hosts, seats);
  EXPECT_EQ(separation.pairs, 14);
  EXPECT_EQ(separation.on_other_hosts, 1);
}

TEST(DsePlacement, PackagesMatterWithinAHost) {
  const std::vector<HostRoom> host{{16, machine(2, 4)}};
  const auto topology = *Topology::parse("mesh:2x8", 0);
  EXPECT_EQ(separation_of(topology, host, place("mesh:2x8", host)).in_other_packages, 2);
}

TEST(DsePlacement, FirstHostsAreFilledFirst) {
  const std::vector<HostRoom> hosts{{3, machine(1, 1)}, {2, machine(1, 4)}, {9, machine(1, 4)}};
  const auto seats = place("ring:5", hosts);
  EXPECT_EQ(std::ranges::count(seats, 0, &Seat::host), 3);
  EXPECT_EQ(std::ranges::count(seats, 1, &Seat::host), 2);
}

TEST(DsePlacement, ManyTasksShareCores) {
  const std::vector<HostRoom> hosts{{1000, machine(1, 1)}};
  place("torus:20x50", hosts);
}

}  // namespace
}  // namespace shima::dse
