#include "simulate/machine.h"

#include <algorithm>
#include <cmath>

namespace shima::simulate {
namespace {

constexpr double mega = 1e6;
constexpr double micro = 1e-6;
constexpr double copies_near = 1;
constexpr double copies_between_nodes = 3;
constexpr double ends_of_a_link = 2;
constexpr int meetings = 2;  // the digests, and the agreement at the end

double log2_up(int count) { return std::ceil(std::log2(std::max(count, 1))); }

// Of one processor.
double copy_seconds(const Traffic& traffic, const Machine& machine) {
  if (traffic.independent) return 0;
  const double copies = copies_near + traffic.far_share * (copies_between_nodes - copies_near);
  return copies * static_cast<double>(traffic.bytes) / (machine.copy_mb_s * mega);
}

double wire_seconds(const Traffic& traffic, const Machine& machine) {
  if (traffic.independent) return 0;
  return traffic.far_share * static_cast<double>(traffic.bytes) / (machine.wire_mb_s * mega);
}

// The reads or writes of files: one for each piece, or for each window.
double files_seconds(const Traffic& traffic, const Machine& machine) {
  const double calls =
      traffic.independent
          ? static_cast<double>(traffic.pieces)
          : std::max(1.0,
                     static_cast<double>(traffic.bytes) /
                         static_cast<double>(std::max<std::uint64_t>(1, traffic.window_bytes)));
  return calls * machine.io_us * micro;
}

double disk_seconds(const Traffic& traffic, const Machine& machine) {
  return static_cast<double>(traffic.bytes) / (machine.disk_mb_s * mega);
}

double first_window_seconds(const Traffic& traffic, const Machine& machine) {
  if (traffic.independent || traffic.far_share == 0) return 0;
  const double bytes = std::min(static_cast<double>(traffic.window_bytes),
                                static_cast<double>(traffic.bytes) / std::max(traffic.agents, 1));
  return (2 * machine.round_us + machine.latency_us) * micro +
         bytes * copies_between_nodes / (machine.copy_mb_s * mega) +
         bytes / (machine.wire_mb_s * mega);
}

}  // namespace

const std::array<MachineField, 10> machine_fields{{
    {"latency_us", &Machine::latency_us, "a short message between nodes"},
    {"round_us", &Machine::round_us, "a round of messages between the leaders of nodes"},
    {"message_us", &Machine::message_us, "processor time for each message"},
    {"meeting_us", &Machine::meeting_us, "a meeting of the ranks of a node, one on each core"},
    {"piece_ns", &Machine::piece_ns, "processor time for each piece"},
    {"io_us", &Machine::io_us, "processor time for each read or write of a file"},
    {"copy_mb_s", &Machine::copy_mb_s, "copying by one processor"},
    {"wire_mb_s", &Machine::wire_mb_s, "a node's link, each way"},
    {"disk_mb_s", &Machine::disk_mb_s, "a subfile"},
    {"shared_cores", &Machine::shared_cores, "of all nodes together; 0: nodes have their own"},
}};

Estimate estimate(const Traffic& traffic, const Machine& machine) {
  const bool shared = machine.shared_cores > 0;
  const double cores =
      shared ? machine.shared_cores : static_cast<double>(traffic.nodes) * traffic.cores_per_node;
  const double pieces_s = static_cast<double>(traffic.pieces) * machine.piece_ns * 1e-9;
  const double wire = wire_seconds(traffic, machine);
  const double disk = disk_seconds(traffic, machine);
  double work = copy_seconds(traffic, machine) + pieces_s + files_seconds(traffic, machine) +
                traffic.messages * machine.message_us * micro;
  if (shared) work += ends_of_a_link * wire + disk;

  Estimate made;
  // Members that share a core take turns.
  const double turns = std::max(1.0, traffic.ranks / cores);
  made.meetings_s =
      meetings * micro * turns * (machine.meeting_us + machine.round_us * log2_up(traffic.nodes));
  made.processors_s = work / cores;
  made.wire_s = wire / (shared ? 1 : traffic.nodes);
  // Writers of one file wait for each other.
  made.disk_s =
      (disk + (traffic.independent ? files_seconds(traffic, machine) : 0)) / traffic.subfiles;
  made.first_window_s = first_window_seconds(traffic, machine);
  made.seconds = made.meetings_s + std::max({made.processors_s, made.wire_s, made.disk_s}) +
                 made.first_window_s;
  return made;
}

}  // namespace shima::simulate
