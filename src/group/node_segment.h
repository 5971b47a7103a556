// The memory that the members of one communicator on one node share.
//
// It is made once per communicator and holds a table of slots. Each open file takes one, found by a
// key that all members compute alike, so opening a file needs no message. A slot has a barrier that
// carries an outcome and an event to sleep on. Its larger part, for each member a mailbox and a
// the windows that it shows when it is an agent, grows with the files that are open: it
// lies in chunks, each twice the size of the one before, which whoever first needs one makes and
// the others map. A member that cannot map a chunk can still meet the others in the slot and tell
// them. All structs below lie in shared memory; zero bytes are their valid initial state.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cpu_mask.h"
#include "ipc/one_space.h"
#include "ipc/shared_buffer.h"
#include "ipc/wait.h"

namespace shima {

// A barrier that also finds the maximum of two words over those who arrive.
//
// Who waits for a member whose process has ended breaks the barrier, for good: one word says how
// each meeting ended, so that all who live leave it alike, whether they waited or were still to
// come.
struct Rendezvous {
  static constexpr std::uint64_t broken = std::uint64_t{1} << 63;
  struct Maxima {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint64_t> generation;  // how many meetings are over, and `broken`
  std::atomic<std::uint64_t> first;
  std::atomic<std::uint64_t> second;
  std::array<Maxima, 2> released;
  Event event;

  // Waits for `member_count` arrivals.
  [[nodiscard]] Result<Maxima> arrive(Maxima mine, std::uint32_t member_count,
                                      const WaitHooks& hooks);
};

// One member's message to all others; long ones lie in a SharedBuffer of the sender.
struct Mailbox {
  static constexpr std::size_t inline_bytes = 3072;
  std::uint64_t len_bytes;
  SharedRef spill;
  std::array<std::byte, inline_bytes> data;
};

// The state of one of an agent's two windows.
struct WindowState {
  std::atomic<std::uint32_t> opened;   // how many windows were opened here so far
  std::atomic<std::uint32_t> missing;  // members that still have to finish with it
  std::atomic<std::uint32_t> spoiled;  // a member finished without having copied
  std::atomic<std::int32_t> domain;    // which of the agent's domains it lies in
  std::atomic<std::int64_t> begin;
  std::atomic<std::int64_t> end;
};

// What an agent shows to the members.
struct AgentWindows {
  std::array<WindowState, 2> windows;
  std::atomic<std::uint32_t> closed;  // no more windows in this call
  SharedRef staging;
};

// A member's independent write that another member may carry out (see independent/combine.h).
struct WriteRequest {
  enum State : std::uint32_t { none, posted, taken, done, failed };
  std::atomic<std::uint32_t> state;
  Mailbox message;
};

struct alignas(64) SlotMember {
  AgentWindows agent_windows;
  std::array<Mailbox, 2> mailboxes;  // used in turn: messages stay while the next ones are written
  WriteRequest request;
  std::atomic<std::uint32_t> transfer;  // the number of the call in which it may use others' memory
};

struct alignas(64) Slot {
  Rendezvous rendezvous;
  alignas(64) Event event;                     // windows opened, filled, closed
  std::atomic<std::uint32_t> quit;             // the number of the call that a member has quit
  alignas(64) std::atomic<std::uint32_t> led;  // who carries out requests: its index + 1
  Event write_requests;                        // posted, done, leader gone
  alignas(64)
      std::array<std::atomic<std::int64_t>, 2> shared_pointer;  // group/pointer/shared_pointer.h
  std::atomic<std::uint32_t> departed;
};

class NodeSegment {
 public:
  // Makes the memory for `member_count` members; one member of the node does so.
  [[nodiscard]] static Result<SharedBuffer> make(int member_count);
  // Maps the memory that `ref` names, as member `index`. Calls no MPI; waits for nobody.
  [[nodiscard]] static Result<std::shared_ptr<NodeSegment>> attach(const SharedRef& ref,
                                                                   int member_count, int index);

  // Shows this process to the others and learns who can be reached. Collective over the node; call
  // once.
  [[nodiscard]] Status introduce(const WaitHooks& hooks);

  [[nodiscard]] int member_count() const { return member_count_; }
  [[nodiscard]] int index() const { return index_; }
  // Whether every member can reach every other, with process_vm_* or by its address.
  [[nodiscard]] bool can_pull() const { return can_pull_; }
  // Whether all members live in one address space.
  [[nodiscard]] bool one_space() const { return one_space_; }
  // Cores that the members together may use.
  [[nodiscard]] int usable_cores() const { return std::max(1, cores_.count()); }
  // Lets the calling thread run on every core that a member may use. A rank may be bound to one
  // core; a thread that helps it is to take that of a rank that sleeps.
  void use_all_cores() const;
  // An error once a member's process has ended. Each call checks up to 64 of them in turn, because
  // a check costs three system calls.
  [[nodiscard]] Status check_peers() const;
  [[nodiscard]] Status check_peer(int index) const;

  // The slot of `key`, taken by the first member that enters. Every member enters and leaves each
  // key once.
  [[nodiscard]] Result<Slot*> enter(std::uint64_t key);
  void leave(Slot* slot);
  // Has the memory for member() ready; cheap where it is. May fail on one member alone.
  [[nodiscard]] Status open_members(const Slot* slot);
  [[nodiscard]] SlotMember& member(const Slot* slot, int index) const;
  [[nodiscard]] PeerBuffers& peer_buffers() { return peer_buffers_; }

 private:
  struct Peer {
    std::atomic<std::uint64_t> nonce;
    std::uint64_t nonce_address;
    ProcessIdentity process;
    SpacePlace place;
    CpuMask cores;
  };
  static constexpr std::size_t slot_count = 1024;
  // Chunk 0 has the members of slot 0, chunk c those of slots 2^(c-1) to 2^c - 1.
  static constexpr std::size_t chunk_count = std::bit_width(slot_count - 1) + 1;
  struct Chunk {
    SharedRef memory;            // of kind none: not made yet
    std::uint32_t mapped_count;  // members that have it
  };
  struct Header {
    std::atomic<std::uint32_t> lock;             // the holder's index + 1
    std::atomic<std::uint32_t> used_slots;       // slots beyond were never used
    std::array<std::uint64_t, slot_count> keys;  // 0: free
    std::array<Chunk, chunk_count> chunks;       // the first lies in this memory
    Rendezvous introduction;
  };
  // Where the parts of the memory begin.
  struct Places {
    std::size_t peers = 0;
    std::size_t slots = 0;
    std::size_t members = 0;
    std::size_t end = 0;
  };

  NodeSegment(Mapping mapping, int member_count, int index);
  [[nodiscard]] Header& header() const;
  [[nodiscard]] Peer& peer(int index) const;
  [[nodiscard]] Slot* slots() const;
  [[nodiscard]] std::size_t place_of(const Slot* slot) const {
    return static_cast<std::size_t>(slot - slots());
  }
  // Null where the table is full.
  [[nodiscard]] Result<Slot*> find_slot(std::uint64_t key);
  [[nodiscard]] Status open_chunk(std::size_t chunk);
  void close_shared_chunks();
  static Places places(int member_count);
  [[nodiscard]] Status lock();
  void unlock();
  [[nodiscard]] bool reach_all() const;
  [[nodiscard]] bool hold_all();

  Mapping mapping_;
  int member_count_;
  int index_;
  std::array<std::atomic<SlotMember*>, chunk_count> members_{};  // null: not mapped here
  std::mutex opening_;                                           // for the next two
  std::array<SharedBuffer, chunk_count> made_chunks_;
  std::array<Mapping, chunk_count> mapped_chunks_;
  bool can_pull_ = false;
  bool one_space_ = false;
  HeldTasks held_;
  CpuMask cores_;  // of all members
  mutable std::atomic<unsigned> next_check_{0};
  std::atomic<std::size_t> entered_{0};
  std::atomic<std::uint64_t> nonce_{0};
  PeerBuffers peer_buffers_;
};

}  // namespace shima
