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
constexpr double sieve_bytes = 1 << 20;     // of one read
constexpr double sieve_pitch_bytes = 4096;  // pieces closer than this are read together
constexpr double few_bytes = 16 * 1024;     // of a rank, moved before the meeting

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

// What reads or writes of files move, and how many there are.
struct FileWork {
  double bytes = 0;
  double calls = 0;
  double seconds = 0;       // of a processor for each call, and for reads of cached bytes
  double disk_seconds = 0;  // of a subfile that moves all
};

bool sieves(const Traffic& traffic) {
  const double pieces = static_cast<double>(traffic.pieces) / traffic.ranks;
  return traffic.independent && traffic.is_read && pieces > 2 &&
         static_cast<double>(traffic.span_bytes) / pieces < sieve_pitch_bytes;
}

// One call for each piece, or for each window.
FileWork file_work(const Traffic& traffic, const Machine& machine) {
  FileWork work{.bytes = static_cast<double>(traffic.bytes),
                .calls = static_cast<double>(traffic.pieces)};
  if (sieves(traffic)) {
    work.bytes = static_cast<double>(traffic.span_bytes) * traffic.ranks;
    work.calls = std::max<double>(traffic.ranks, work.bytes / sieve_bytes);
  } else if (!traffic.independent) {
    work.calls = std::max(
        1.0, work.bytes / static_cast<double>(std::max<std::uint64_t>(1, traffic.window_bytes)));
  }
  work.seconds = work.calls * machine.io_us * micro;
  if (traffic.cached)
    work.seconds += work.bytes / (machine.cache_mb_s * mega);
  else
    work.disk_seconds = work.bytes / (machine.disk_mb_s * mega);
  return work;
}

// Members move few bytes of their own before they meet; else they also agree on the outcome.
int meetings_of(const Traffic& traffic) {
  const bool is_over =
      traffic.independent && static_cast<double>(traffic.bytes) <= few_bytes * traffic.ranks;
  return is_over ? 1 : 2;
}

// Members that share a core take turns.
double meeting_seconds(const Traffic& traffic, const Machine& machine, double cores) {
  const double turns = traffic.ranks / cores;
  const double here_us = turns > 1 ? turns * machine.turn_us : machine.meeting_us;
  return micro * (here_us + std::max(1.0, turns) * machine.round_us * log2_up(traffic.nodes));
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

const std::array<MachineField, 12> machine_fields{{
    {"latency_us", &Machine::latency_us, "a short message between nodes"},
    {"round_us", &Machine::round_us, "a round of messages between the leaders of nodes"},
    {"message_us", &Machine::message_us, "processor time for each message"},
    {"meeting_us", &Machine::meeting_us, "a meeting of the ranks of a node, one on each core"},
    {"turn_us", &Machine::turn_us, "letting another rank have a core that several share"},
    {"piece_ns", &Machine::piece_ns, "processor time for each piece"},
    {"io_us", &Machine::io_us, "processor time for each read or write of a file"},
    {"copy_mb_s", &Machine::copy_mb_s, "copying by one processor"},
    {"wire_mb_s", &Machine::wire_mb_s, "a node's link, each way"},
    {"disk_mb_s", &Machine::disk_mb_s, "a subfile"},
    {"cache_mb_s", &Machine::cache_mb_s, "reads of cached bytes by one processor"},
    {"shared_cores", &Machine::shared_cores, "of all nodes together; 0: nodes have their own"},
}};

Estimate estimate(const Traffic& traffic, const Machine& machine) {
  const bool shared = machine.shared_cores > 0;
  const double cores =
      shared ? machine.shared_cores : static_cast<double>(traffic.nodes) * traffic.cores_per_node;
  // A call for each piece has the cost of the piece.
  const bool by_piece = traffic.independent && !sieves(traffic);
  const double pieces_s =
      by_piece ? 0 : static_cast<double>(traffic.pieces) * machine.piece_ns * 1e-9;
  const double wire = wire_seconds(traffic, machine);
  const FileWork files = file_work(traffic, machine);
  double work = copy_seconds(traffic, machine) + pieces_s + files.seconds +
                traffic.messages * machine.message_us * micro;
  if (shared) work += ends_of_a_link * wire + files.disk_seconds;

  Estimate made;
  made.meetings_s = meetings_of(traffic) * meeting_seconds(traffic, machine, cores);
  made.processors_s = work / std::min(cores, static_cast<double>(traffic.ranks));
  made.wire_s = wire / (shared ? 1 : traffic.nodes);
  // Writers of one file wait for each other.
  const bool take_turns = traffic.independent && !traffic.is_read;
  made.disk_s = (files.disk_seconds + (take_turns ? files.seconds : 0)) / traffic.subfiles;
  made.first_window_s = first_window_seconds(traffic, machine);
  made.seconds = made.meetings_s + std::max({made.processors_s, made.wire_s, made.disk_s}) +
                 made.first_window_s;
  return made;
}

}  // namespace shima::simulate
