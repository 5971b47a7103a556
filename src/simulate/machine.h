// A small model of how long the transfers of a planned call take.
//
// A call takes its meetings, then the longest of three that overlap: the work of the processors,
// the busiest link, and the disks; and messages that wait for each other: those of the first
// window, or, where agents share their cores, all of an agent. Processors copy bytes, walk pieces,
// call the kernel for reads and writes, send and receive messages, and let members have a part in
// windows (visits). Writers of one file wait for each other, so their calls add up, and small ones
// take longer with several members on a core; reads of cached bytes are work of the processors; a
// rank that reads small pieces alone reads what lies between them too, and one that writes them
// alone writes them through a mapping of the file, if they lie close together in a file system of
// this machine. Between nodes, a byte is copied three times more than its write: into the master's
// window, into the message, and into the agent's window. Members that share a core take turns, so a
// meeting or a message takes as many turns as members share it. Their work takes longer, too: those
// that wait look for messages, and each finds the caches full of the others' bytes. A window that
// members fill goes from its agent to them and back, which takes context switches. A large message
// arrives in segments, each of which must be looked for. Where nodes are namespaces of one machine,
// links and disks are work of the processors that they share, so that all of it adds up; a byte on
// a link keeps the sender's and the receiver's processor busy. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shima::simulate {

// All of it can be measured; see bench/model.py.
struct Machine {
  double meeting_us = 5;  // of the members of a node, one on each core
  double turn_us = 10;    // to let another member have the core
  double round_us = 4;    // from one node to another: the message, and until it is noticed
  double message_us = 1;  // of processors for each message, at both ends
  // More work of processors, and waiting for small writes, for each further member on a core.
  double crowding = 0.03;
  double segment_kb = 1000;        // of a message, that arrives at once
  double visit_us = 1;             // of a processor for a member's part in a window
  double hand_us = 10;             // more for a window that members fill, if they share cores
  double piece_ns = 5;             // of a processor for each piece at a regular place
  double list_piece_ns = 20;       // the same for a piece of a list
  double far_list_piece_ns = 100;  // more, for a piece of a list that goes to another node
  double sieved_piece_ns = 60;     // to pick a piece of a list out of what a rank has read
  double mapped_piece_ns = 60;     // to write a piece through a mapping of the file
  double io_us = 1;                // of a processor for each read or write of a file
  double copy_mb_s = 8000;         // by one processor
  double wire_mb_s = 12000;        // of a node's link, each way
  double disk_mb_s = 3000;         // of a subfile
  double cache_mb_s = 6000;    // cached bytes read, or written through a mapping, by one processor
  double memory_mb_s = 10000;  // more, for bytes that the processors' cache does not hold
  double processor_cache_mb = 32;
  double shared_cores = 0;  // of all nodes together; 0: each node has its own
};

struct MachineField {
  std::string_view name;
  double Machine::* value;
  std::string_view text;
};

extern const std::array<MachineField, 21> machine_fields;

// What a call moves.
struct Traffic {
  bool independent = false;
  bool is_read = false;
  bool cached = false;  // the bytes that are read
  bool listed = false;  // the places of pieces follow no rule
  bool pulled = false;  // agents and masters access the memory of members, who only wait
  int ranks = 1;
  int members = 1;  // with bytes
  int nodes = 1;
  int cores_per_node = 1;  // that move bytes
  int agents = 1;
  int subfiles = 1;
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
  std::uint64_t span_bytes = 0;  // from the first to the last byte of a member
  double far_share = 0;          // of the bytes, between nodes
  double messages = 0;           // between nodes, requests and grants included
  double windows = 1;            // of all agents
  double visits = 0;             // of members in windows with bytes of theirs
  std::uint64_t window_bytes = 0;
};

struct Estimate {
  double seconds = 0;
  double meetings_s = 0;
  double processors_s = 0;
  double wire_s = 0;
  double disk_s = 0;
  double messages_s = 0;  // that wait for each other
};

[[nodiscard]] Estimate estimate(const Traffic& traffic, const Machine& machine);

}  // namespace shima::simulate
