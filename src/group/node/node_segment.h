// The memory that the members of one communicator on one node share.
//
// It is created once per communicator and holds a table of slots. Each open file uses one, found by
// a key that all members compute identically, so opening a file needs no message. A slot has a
// barrier that carries an outcome and an event to sleep on. Its larger part, with a mailbox per
// member and the windows that the member offers as an agent, grows with the number of open files:
// it is stored in chunks, each twice the size of the one before, which the first member to need one
// creates and the others map. A member that cannot map a chunk can still meet the others in the
// slot and report the error. All structs below are in shared memory; zero bytes are their valid
// initial state.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/function_ref.h"
#include "base/process/cpu_mask.h"
#include "group/node/contribution.h"
#include "ipc/one_space.h"
#include "ipc/shared_buffer.h"
#include "ipc/wait.h"

namespace shima {

// A barrier that also computes the maximum of two words over the arriving members.
//
// A member that waits for another whose process has exited breaks the barrier permanently: one word
// records how each meeting ended, so that all living members leave it with the same outcome,
// whether they were already waiting or arrive later.
struct Rendezvous {
  static constexpr std::uint64_t broken = std::uint64_t{1} << 63;
  struct Maxima {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  // What members write on arrival, what waiting members read, and what they sleep on are in cache
  // lines of their own: a waiting member would take the line from the one that it waits for.
  alignas(64) std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint64_t> first;
  std::atomic<std::uint64_t> second;
  alignas(64) std::atomic<std::uint64_t> generation;  // number of completed meetings, and `broken`
  std::array<Maxima, 2> released;
  alignas(64) Event event;
  Event gathered;  // all but the last have arrived

  // Waits for `member_count` arrivals. The last to arrive calls `before_release`, which may change
  // the maxima.
  [[nodiscard]] Result<Maxima> arrive(
      Maxima mine, std::uint32_t member_count, const WaitHooks& hooks,
      WaitLength length = WaitLength::unknown,
      FunctionRef<void(Maxima&)> before_release = [](Maxima&) {});
  // For one member, the leader, that arrives a second time, as the last: the others wait for
  // `member_count` + 1 arrivals. Waits until all of them have arrived; returns the maxima so far.
  [[nodiscard]] Result<Maxima> gather(Maxima mine, std::uint32_t member_count,
                                      const WaitHooks& hooks);

 private:
  [[nodiscard]] Status wait_or_break(Event& on, std::uint64_t before, const WaitHooks& hooks,
                                     WaitLength length, FunctionRef<bool()> ready);
};

// One member's message to all others; a long message is in a SharedBuffer of the sender, which each
// reader must map: that takes longer than the meeting. A small write (collective/small_write.h) has
// room here.
struct Mailbox {
  static constexpr std::size_t inline_bytes = std::size_t{18} * 1024;
  std::uint64_t len_bytes;
  SharedRef spill;
  std::array<std::byte, inline_bytes> data;
};

// The lasting part of a member's message in a meeting that starts a transfer.
struct LastingBox {
  std::uint64_t serial;  // 0: none
  std::uint64_t len_bytes;
  SharedRef memory;
};

// The state of one of a server's two windows.
struct WindowState {
  std::atomic<std::uint32_t> opened;   // number of windows opened here so far
  std::atomic<std::uint32_t> missing;  // members that have not yet finished it
  std::atomic<std::uint32_t> spoiled;  // a member finished without having copied
  std::atomic<std::int32_t> agent;     // the number of the agent that owns it
  std::atomic<std::int32_t> domain;    // index of its domain among the agent's
  std::atomic<std::int64_t> begin;
  std::atomic<std::int64_t> end;
};

// Who fills windows from members, or hands them out.
enum class WindowRole : std::uint8_t {
  agent,   // for itself
  master,  // for agents on other nodes
};
inline constexpr std::size_t window_roles = 2;

// The state that a member publishes to the others in one role.
struct ServerWindows {
  std::array<WindowState, 2> windows;
  std::atomic<std::uint32_t> closed;  // 1: no more windows in this call
  SharedRef staging;
};

// A member's independent write that another member may execute (see independent/combine.h).
struct WriteRequest {
  enum State : std::uint32_t { none, posted, taken, done, failed };
  static constexpr std::size_t most_bytes = 3072;
  std::atomic<std::uint32_t> state;
  std::uint64_t len_bytes;
  std::array<std::byte, most_bytes> message;
};

struct alignas(64) SlotMember {
  std::array<ServerWindows, window_roles> windows;
  std::array<Mailbox, 2> mailboxes;  // used in turn: messages stay while the next ones are written
  LastingBox lasting;
  alignas(64) std::array<Contribution::Value,
                         2> values;  // likewise; the first member's becomes the joined one
  WriteRequest request;
  std::atomic<std::uint32_t> transfer;  // number of the call in which it may access others' memory
};

struct alignas(64) Slot {
  Rendezvous rendezvous;
  alignas(64) Event event;                     // windows opened, filled, closed
  std::atomic<std::uint32_t> quit;             // number of the call that a member has quit
  std::atomic<std::uint32_t> asked;            // masters whose requests are all being received
  std::atomic<std::uint32_t> asking_over;      // 1: those of all nodes are
  alignas(64) std::atomic<std::uint32_t> led;  // the leader: its index + 1
  Event write_requests;                        // posted, done, leader lost
  alignas(64)
      std::array<std::atomic<std::int64_t>, 2> shared_pointer;  // group/pointer/shared_pointer.h
  std::atomic<std::uint32_t> departed;
};

class NodeSegment {
 public:
  // Creates the memory for `member_count` members; called by one member of the node.
  [[nodiscard]] static Result<SharedBuffer> make(int member_count);
  // Maps the memory of `ref`, as member `index`. Calls no MPI and does not block.
  [[nodiscard]] static Result<std::shared_ptr<NodeSegment>> attach(const SharedRef& ref,
                                                                   int member_count, int index);

  // Publishes this process to the others and determines which of them it can access. Collective
  // over the node; call once.
  [[nodiscard]] Status introduce(const WaitHooks& hooks);
  // One more meeting of all members, after `introduce`: the maxima of what they bring. Allocates
  // nothing. Collective over the node.
  [[nodiscard]] Result<Rendezvous::Maxima> meet(Rendezvous::Maxima mine, const WaitHooks& hooks) {
    return header().introduction.arrive(mine, static_cast<std::uint32_t>(member_count_), hooks);
  }

  [[nodiscard]] int member_count() const { return member_count_; }
  [[nodiscard]] int index() const { return index_; }
  // Whether every member can access every other's memory, with process_vm_* or by its address.
  [[nodiscard]] bool can_pull() const { return can_pull_; }
  // Whether all members share one address space.
  [[nodiscard]] bool one_space() const { return one_space_; }
  // Cores that the members together may use.
  [[nodiscard]] int usable_cores() const { return std::max(1, cores_.count()); }
  // Whether a yield of one member may let every other have its turn: the kernel's automatic
  // scheduler groups, if there are any, are those of sessions. Groups made by hand are not known.
  [[nodiscard]] bool one_group() const { return one_group_; }
  // Lets the calling thread run on every core that a member may use. A rank may be bound to one
  // core; a thread that helps it should use the core of a sleeping rank.
  void use_all_cores() const;
  // An error after a member's process has exited, or after a member on another node was lost. Each
  // call checks up to 64 members in turn, because a check costs three system calls.
  [[nodiscard]] Status check_peers() const;
  [[nodiscard]] Status check_peer(int index) const;
  // Words for the liveness service (group/liveness/lookout.h).
  [[nodiscard]] std::atomic<std::uint32_t>& lost_word() const { return header().lost; }
  [[nodiscard]] std::atomic<std::uint32_t>& left_word(int index) const { return peer(index).left; }

  // The slot of `key`, taken by the first member that enters. Every member enters and leaves each
  // key once.
  [[nodiscard]] Result<Slot*> enter(std::uint64_t key);
  void leave(Slot* slot);
  // Maps the memory for member(); cheap if already mapped. May fail on one member alone.
  [[nodiscard]] Status open_members(const Slot* slot);
  [[nodiscard]] bool has_members(const Slot* slot) const;
  [[nodiscard]] SlotMember& member(const Slot* slot, int index) const;
  [[nodiscard]] PeerBuffers& peer_buffers() { return peer_buffers_; }

 private:
  struct Peer {
    std::atomic<std::uint64_t> nonce;
    std::uint64_t nonce_address;
    ProcessIdentity process;
    SpacePlace place;
    CpuMask cores;
    std::int32_t session;
    std::atomic<std::uint32_t> left;
  };
  static constexpr std::size_t slot_count = 1024;
  // Chunk 0 has the members of slot 0, chunk c those of slots 2^(c-1) to 2^c - 1.
  static constexpr std::size_t chunk_count = std::bit_width(slot_count - 1) + 1;
  struct Chunk {
    SharedRef memory;            // kind none: not created yet
    std::uint32_t mapped_count;  // members that have mapped it
  };
  struct Header {
    std::atomic<std::uint32_t> lock;             // the holder's index + 1
    std::atomic<std::uint32_t> used_slots;       // slots beyond were never used
    std::array<std::uint64_t, slot_count> keys;  // 0: free
    std::array<Chunk, chunk_count> chunks;       // the first is in this memory
    Rendezvous introduction;
    std::atomic<std::uint32_t> lost;
  };
  // Offsets of the parts of the memory.
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
  // Null if the table is full.
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
  std::mutex opening_;                                           // guards the next two
  std::array<SharedBuffer, chunk_count> made_chunks_;
  std::array<Mapping, chunk_count> mapped_chunks_;
  bool can_pull_ = false;
  bool one_space_ = false;
  bool one_group_ = true;
  HeldTasks held_;
  CpuMask cores_;  // of all members
  mutable std::atomic<unsigned> next_check_{0};
  std::atomic<std::size_t> entered_{0};
  std::atomic<std::uint64_t> nonce_{0};
  PeerBuffers peer_buffers_;
};

}  // namespace shima
