#include "simulate/machine.h"

#include <algorithm>
#include <cmath>

namespace shima::simulate {
namespace {

constexpr double kilo = 1e3;
constexpr double mega = 1e6;
constexpr double micro = 1e-6;
constexpr double nano = 1e-9;
constexpr double copies_near = 1;
constexpr double copies_between_nodes = 3;
constexpr double ends_of_a_link = 2;
constexpr double hops_of_a_write = 2;       // grant and bytes; requests come meanwhile
constexpr double hops_of_a_read = 3;        // grant, places and bytes
constexpr double sieve_bytes = 1 << 20;     // of one read
constexpr double sieve_pitch_bytes = 4096;  // pieces closer than this are read together
// Small writes go through a mapping: store/subfile/close_runs.h.
constexpr double few_mapped_pieces = 8;
constexpr double mapped_pitch_bytes = 1024;     // at most, from piece to piece
constexpr double small_call_bytes = 64 * 1024;  // at most; longer calls do not wait longer
constexpr double few_bytes = 16 * 1024;         // of a rank, moved before the meeting

double log2_up(int count) { return std::ceil(std::log2(std::max(count, 1))); }

// The cores that all ranks have, and how many ranks take turns on each.
struct Cores {
  double count;
  double busy;   // with a rank
  double turns;  // at least 1
};

Cores cores_for(const Traffic& traffic, const Machine& machine) {
  const double count = machine.shared_cores > 0
                           ? machine.shared_cores
                           : static_cast<double>(traffic.nodes) * traffic.cores_per_node;
  return {count, std::min<double>(count, traffic.ranks), std::max(1.0, traffic.ranks / count)};
}

double crowding_factor(const Machine& machine, const Cores& cores) {
  return 1 + (cores.turns - 1) * machine.crowding;
}

double pieces_of_a_member(const Traffic& traffic) {
  return static_cast<double>(traffic.pieces) / std::max(traffic.members, 1);
}

bool sieves(const Traffic& traffic) {
  const double pieces = pieces_of_a_member(traffic);
  return traffic.independent && traffic.is_read && pieces > 2 &&
         static_cast<double>(traffic.span_bytes) / pieces < sieve_pitch_bytes;
}

// What several machines reach is a network's file system, whose files are not mapped for writing.
bool maps(const Traffic& traffic, const Machine& machine) {
  if (traffic.nodes > 1 && machine.shared_cores == 0) return false;
  const double pieces = pieces_of_a_member(traffic);
  return traffic.independent && !traffic.is_read && pieces >= few_mapped_pieces &&
         static_cast<double>(traffic.span_bytes) / pieces <= mapped_pitch_bytes;
}

// Of one processor: copies from one member's memory to another's, or out of what was read.
double copy_seconds(const Traffic& traffic, const Machine& machine) {
  if (traffic.independent && !sieves(traffic)) return 0;
  const double copies = copies_near + traffic.far_share * (copies_between_nodes - copies_near);
  return copies * static_cast<double>(traffic.bytes) / (machine.copy_mb_s * mega);
}

// Of one processor: pieces between nodes are walked at both ends, and those of lists are described
// one by one. If there is a call of the kernel for each piece, it has the cost of the piece.
double piece_seconds(const Traffic& traffic, const Machine& machine) {
  const auto pieces = static_cast<double>(traffic.pieces);
  if (maps(traffic, machine)) return pieces * machine.mapped_piece_ns * nano;
  if (sieves(traffic))
    return pieces * (traffic.listed ? machine.sieved_piece_ns : machine.piece_ns) * nano;
  if (traffic.independent) return 0;
  const double near_ns = traffic.listed ? machine.list_piece_ns : machine.piece_ns;
  const double far_ns = traffic.listed ? machine.far_list_piece_ns : machine.piece_ns;
  return pieces * (near_ns + traffic.far_share * far_ns) * nano;
}

double wire_seconds(const Traffic& traffic, const Machine& machine) {
  if (traffic.independent) return 0;
  return traffic.far_share * static_cast<double>(traffic.bytes) / (machine.wire_mb_s * mega);
}

// Of a processor, for each byte of a call: the share that no cache holds comes from memory.
double memory_seconds(const Traffic& traffic, const Machine& machine) {
  const double bytes = 2 * static_cast<double>(traffic.bytes);
  const double held =
      machine.processor_cache_mb * mega * (machine.shared_cores > 0 ? 1 : traffic.nodes);
  return bytes > held ? (1 - held / bytes) / (machine.memory_mb_s * mega) : 0;
}

// What reads or writes of files move, and how many there are.
struct FileWork {
  double bytes = 0;
  double calls = 0;
  double seconds = 0;       // of a processor for each call, and for bytes that take no lock
  double disk_seconds = 0;  // of a subfile that moves all
};

// One call for each piece, or for each window. The last piece that goes through a mapping has one.
FileWork file_work(const Traffic& traffic, const Machine& machine) {
  FileWork work{.bytes = static_cast<double>(traffic.bytes),
                .calls = static_cast<double>(traffic.pieces)};
  if (sieves(traffic)) {
    work.bytes = static_cast<double>(traffic.span_bytes) * traffic.members;
    work.calls = std::max<double>(traffic.members, work.bytes / sieve_bytes);
  } else if (maps(traffic, machine)) {
    work.calls = static_cast<double>(traffic.members) * traffic.subfiles;
  } else if (!traffic.independent) {
    work.calls = traffic.windows;
  }
  work.seconds = work.calls * machine.io_us * micro;
  const double memory = memory_seconds(traffic, machine);
  if (traffic.cached || maps(traffic, machine))
    work.seconds += work.bytes * (memory + 1 / (machine.cache_mb_s * mega));
  else
    work.disk_seconds = work.bytes * (memory + 1 / (machine.disk_mb_s * mega));
  return work;
}

// How much longer small calls take that wait for each other, if several members share a core.
double waiting_factor(const Traffic& traffic, const FileWork& work, const Machine& machine,
                      const Cores& cores) {
  const bool is_small = work.bytes <= small_call_bytes * work.calls;
  return is_small && traffic.members > 1 ? crowding_factor(machine, cores) : 1;
}

// Members move few bytes of their own before they meet, unless a write has several pieces; else
// they also agree on the outcome. A write that is left to another member is estimated as one that
// is gathered.
int meetings_of(const Traffic& traffic) {
  const bool is_over =
      traffic.independent && static_cast<double>(traffic.bytes) <= few_bytes * traffic.ranks &&
      (traffic.is_read || traffic.pieces <= static_cast<std::uint64_t>(traffic.ranks));
  return is_over ? 1 : 2;
}

double meeting_seconds(const Traffic& traffic, const Machine& machine, const Cores& cores) {
  const double here_us = cores.turns > 1 ? cores.turns * machine.turn_us : machine.meeting_us;
  return micro * (here_us + cores.turns * machine.round_us * log2_up(traffic.nodes));
}

// Agents and members that share cores wait for each other in each window that members fill: it
// takes context switches, during which no other window advances.
double handing_seconds(const Traffic& traffic, const Machine& machine, const Cores& cores) {
  if (traffic.independent || traffic.pulled || cores.turns <= 1) return 0;
  return traffic.windows * machine.hand_us * micro / cores.count;
}

// Messages that wait for each other: those of the first window, if an agent has a core of its own;
// one that shares its core sends or receives one message while all members there have a turn. Where
// nodes have their own processors, no other window keeps these busy meanwhile.
double message_seconds(const Traffic& traffic, const Machine& machine, const Cores& cores) {
  if (traffic.independent || traffic.far_share == 0) return 0;
  const double agents = std::max(traffic.agents, 1);
  const double bytes = std::min(static_cast<double>(traffic.window_bytes),
                                static_cast<double>(traffic.bytes) / agents);
  const double hops =
      (traffic.is_read ? hops_of_a_read : hops_of_a_write) + bytes / (machine.segment_kb * kilo);
  const double further = std::max(0.0, traffic.messages / agents - hops);
  const double in_turn = hops + std::min(1.0, cores.turns - 1) * further;
  const double waits = in_turn * cores.turns * machine.round_us * micro;
  if (machine.shared_cores > 0) return waits;
  return waits + bytes * copies_between_nodes / (machine.copy_mb_s * mega) +
         bytes / (machine.wire_mb_s * mega);
}

}  // namespace

const std::array<MachineField, 21> machine_fields{{
    {"meeting_us", &Machine::meeting_us, "a meeting of the ranks of a node, one on each core"},
    {"turn_us", &Machine::turn_us, "letting another rank have a core that several share"},
    {"round_us", &Machine::round_us, "a message between nodes, and until it is noticed"},
    {"message_us", &Machine::message_us, "processor time for each message, at both ends"},
    {"segment_kb", &Machine::segment_kb, "what arrives at once of a message between nodes"},
    {"visit_us", &Machine::visit_us, "processor time for a rank's part in a window"},
    {"hand_us", &Machine::hand_us,
     "processor time for a window that ranks fill, if they share cores"},
    {"crowding", &Machine::crowding,
     "more processor time and waiting for small writes, for each further rank on a core"},
    {"piece_ns", &Machine::piece_ns, "processor time for each piece at a regular place"},
    {"list_piece_ns", &Machine::list_piece_ns, "processor time for each piece of a list"},
    {"far_list_piece_ns", &Machine::far_list_piece_ns, "more, for a piece that crosses nodes"},
    {"sieved_piece_ns", &Machine::sieved_piece_ns, "picking a piece of a list out of a read"},
    {"mapped_piece_ns", &Machine::mapped_piece_ns, "writing a piece through a mapping"},
    {"io_us", &Machine::io_us, "processor time for each read or write of a file"},
    {"copy_mb_s", &Machine::copy_mb_s, "copying by one processor"},
    {"wire_mb_s", &Machine::wire_mb_s, "a node's link, each way"},
    {"disk_mb_s", &Machine::disk_mb_s, "a subfile"},
    {"cache_mb_s", &Machine::cache_mb_s,
     "reading cached bytes, or writing through a mapping, by one processor"},
    {"memory_mb_s", &Machine::memory_mb_s, "more, for bytes that processors' caches do not hold"},
    {"processor_cache_mb", &Machine::processor_cache_mb, "what processors' caches hold"},
    {"shared_cores", &Machine::shared_cores, "of all nodes together; 0: nodes have their own"},
}};

Estimate estimate(const Traffic& traffic, const Machine& machine) {
  const bool shared = machine.shared_cores > 0;
  const Cores cores = cores_for(traffic, machine);
  const double gather = copy_seconds(traffic, machine) + piece_seconds(traffic, machine) +
                        traffic.visits * machine.visit_us * micro;
  const double wire = wire_seconds(traffic, machine);
  const FileWork files = file_work(traffic, machine);
  double work = gather + files.seconds + traffic.messages * machine.message_us * micro;
  if (shared) work += ends_of_a_link * wire + files.disk_seconds;

  Estimate made;
  made.meetings_s = meetings_of(traffic) * meeting_seconds(traffic, machine, cores);
  made.processors_s = work * crowding_factor(machine, cores) / cores.busy;
  made.wire_s = wire / (shared ? 1 : traffic.nodes);
  made.disk_s = files.disk_seconds / traffic.subfiles;
  // Writers of one file wait for each other, and all of them for the first window.
  if (!traffic.is_read && traffic.independent)
    made.disk_s = (files.disk_seconds + files.seconds) / traffic.subfiles *
                  waiting_factor(traffic, files, machine, cores);
  else if (!traffic.is_read)
    made.disk_s += gather / std::max(traffic.windows, 1.0);
  made.messages_s = message_seconds(traffic, machine, cores);
  made.seconds = made.meetings_s + std::max({made.processors_s, made.wire_s, made.disk_s}) +
                 made.messages_s + handing_seconds(traffic, machine, cores);
  return made;
}

}  // namespace shima::simulate
