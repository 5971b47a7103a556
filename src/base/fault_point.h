// Places where a test can kill or stop a process.
//
// The effect on the others depends on where the rank dies: counted in a barrier or not yet, with a
// lock or without. Each such place names its phase. SHIMA_FAULT=kill:PHASE:RANK[:NTH] ends rank
// RANK of the job by SIGKILL when it reaches that phase for the NTH time (the first, if NTH is left
// out); stop:PHASE:RANK[:NTH] stops it by SIGSTOP. Without faults, a place costs one predicted
// branch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shima {

enum class FaultPhase : std::uint8_t {
  open_enter,       // in MPI_File_open, before the ranks know each other
  open_introduced,  // ranks of a node know each other, of many only their leader; no shared memory
  open_made,        // in the rank that has made the node's memory; the others have not mapped it
  open_joined,      // the node's memory is mapped here; the others do not know
  open_shared,      // all know that; this rank is not introduced in that memory
  open_agree,       // the file is open here; the others do not know
  view,             // the new view is ready here; before the meeting
  size,             // set_size and similar calls: all have met, the first rank has not acted
  sync,             // synced here, before the agreement
  close,            // closed here, before the agreement
  post,             // a collective access: before its description is published
  exchange,         // a description is published in part; before the meeting
  plan,             // all ranks' descriptions are known
  request,          // before a subgroup asks an agent on another node to take part
  grant,            // an agent, before it asks a subgroup on another node for a window
  reply,            // an agent, before it sends a subgroup the bytes of a window
  gather,           // before a member's pieces of a window are copied or sent
  disk,             // before a window or a run is written or read
  wait,             // waiting for others in the middle of an access
  agree,            // before the agreement on errors
  arrive,           // counted in a meeting that the others have not reached
  release,          // the last rank to arrive, before it releases the others
  lock,             // holding the lock of the node's table of files
  claim,            // ordered access: rank 0 has moved the shared pointer; the others do not know
  pointer_ask,      // before a request to the keeper of the shared pointer
  pointer_serve,    // the keeper, before it answers
  write_request,    // an independent write is published for others to execute
  lead,             // before executing the writes of others
  work,             // of a nonblocking or split call: before it is done
  split,            // between the two halves of a split call
  lapi_join,        // in LAPI_Init: no other task knows this one
  lapi_meet,        // the meeting place knows it; the other tasks do not
  lapi_shown,       // the other tasks know it; LAPI_Init has not returned
  lapi_part,        // the stream has taken a part of a message
  lapi_fence,       // the questions of a fence are sent
  lapi_barrier,     // in a round of LAPI_Gfence: the own message is sent
  lapi_gather,      // LAPI_Address_init: the own value is sent
  lapi_term,        // LAPI_Term: all is sent; the other tasks do not know that this one leaves
  // In an I/O node, whatever the rank of the fault is:
  iod_received,  // a request has been received
  iod_write,     // before a run of a request is written
  iod_executed,  // a request has been executed; the client does not know
  iod_joined,    // a client has joined a collective call, which has not begun
  iod_begun,     // all have joined it; no window has been asked for
  iod_window,    // before a window of it is written or read
  iod_moved,     // all its bytes have been moved; no client knows
};

// Their names in SHIMA_FAULT, in the order of the enumeration.
inline constexpr std::array<std::string_view, 45> fault_phase_names{
    "open.enter",    "open.introduced",
    "open.made",     "open.joined",
    "open.shared",   "open.agree",
    "view",          "size",
    "sync",          "close",
    "post",          "exchange",
    "plan",          "request",
    "grant",         "reply",
    "gather",        "disk",
    "wait",          "agree",
    "arrive",        "release",
    "lock",          "claim",
    "pointer.ask",   "pointer.serve",
    "write_request", "lead",
    "work",          "split",
    "lapi.join",     "lapi.meet",
    "lapi.shown",    "lapi.part",
    "lapi.fence",    "lapi.barrier",
    "lapi.gather",   "lapi.term",
    "iod.received",  "iod.write",
    "iod.executed",  "iod.joined",
    "iod.begun",     "iod.window",
    "iod.moved"};

// The parts of a SHIMA_FAULT, and of one fault in it.
[[nodiscard]] std::vector<std::string_view> split_fault(std::string_view text, char separator);
// Whether a fault kills or stops a process, well-formed or not; and whether it is well-formed.
[[nodiscard]] bool is_signal(std::string_view fault);
[[nodiscard]] bool is_well_formed_signal(std::string_view fault);

// Whether the environment named faults when the process started.
extern const bool faults_wanted;
void come_to(FaultPhase phase);

inline void fault_point(FaultPhase phase) {
  if (faults_wanted) [[unlikely]]
    come_to(phase);
}

}  // namespace shima
