// Places where a test can have a rank killed.
//
// What becomes of the others when a rank dies depends on where it was: counted in a barrier or not
// yet, with a lock or without. Each such place names its phase, and
// SHIMA_FAULT=kill:PHASE:RANK[:NTH] ends rank RANK of the job by SIGKILL when it comes to that
// phase for the NTH time (the first, if NTH is left out). Where nothing is to be killed, a place
// costs one predicted branch.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shima {

enum class FaultPhase : std::uint8_t {
  open_enter,       // in MPI_File_open, before the ranks know each other
  open_introduced,  // they know each other; the node's memory is not made
  open_made,        // made by the node's first rank, the others do not know where
  open_joined,      // mapped
  open_agree,       // the file is open here, which the others do not know
  view,             // the new view is ready here; before the meeting
  size,             // set_size and its like: all have met, the first rank has not acted
  sync,             // synced here, before the agreement
  close,            // closed here, before the agreement
  post,             // a collective access: before its description is shown
  exchange,         // a description is shown in part; before the meeting
  plan,             // everybody's description is known
  gather,           // before a member's pieces of a window are copied or sent
  disk,             // before a window or a run is written or read
  wait,             // nothing to do but to wait for others in the middle of an access
  agree,            // before the agreement on errors
  arrive,           // counted in a meeting that the others have not come to yet
  release,          // the last one to come, before it lets the others go
  lock,             // holding the lock of the node's table of files
  claim,            // ordered access: rank 0 has moved the shared pointer, the others do not know
  pointer_ask,      // before asking the keeper of the shared pointer for it
  pointer_serve,    // the keeper, before it answers
  write_request,    // an independent write is shown for others to carry out
  lead,             // before carrying out those of others
  work,             // the thread of nonblocking and split calls, before its work
  split,            // between the two halves of a split call
};

// Their names in SHIMA_FAULT, in the order of the enumeration.
inline constexpr std::array<std::string_view, 26> fault_phase_names{
    "open.enter",    "open.introduced",
    "open.made",     "open.joined",
    "open.agree",    "view",
    "size",          "sync",
    "close",         "post",
    "exchange",      "plan",
    "gather",        "disk",
    "wait",          "agree",
    "arrive",        "release",
    "lock",          "claim",
    "pointer.ask",   "pointer.serve",
    "write_request", "lead",
    "work",          "split"};

// The parts of a SHIMA_FAULT, and of one fault in it.
[[nodiscard]] std::vector<std::string_view> split_fault(std::string_view text, char separator);
// Whether a fault is one of those here, well-formed or not, and whether it is well-formed.
[[nodiscard]] bool is_kill(std::string_view fault);
[[nodiscard]] bool is_well_formed_kill(std::string_view fault);

// Whether the environment named faults when the process started.
extern const bool faults_wanted;
void come_to(FaultPhase phase);

inline void fault_point(FaultPhase phase) {
  if (faults_wanted) [[unlikely]]
    come_to(phase);
}

}  // namespace shima
