// The memory that a delegatee and its requesters share.
//
// A desk belongs to one delegatee and has seats. A requester takes a seat, whose ring of slots only
// it and the delegatee use. So no lock is needed, a process that is killed leaves no half-made
// entry that blocks others, and a request, its answer and their state are one cache line. A
// requester takes a free seat by writing its process ID into it. Only the delegatee frees a seat:
// when its requester leaves or has died. The desk contains no pointers except the address of a
// payload that does not fit its slot. All zero bytes are a desk that is not open.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/process/process_handle.h"
#include "base/result.h"
#include "delegate/await.h"

namespace shima::delegate {

inline constexpr std::uint64_t desk_magic = 0x53'44'45'53'4b'00'00'02;  // "SDESK", version 2
inline constexpr std::size_t most_inline = 4096;  // bytes of a payload in its slot
inline constexpr std::size_t ring_depth = 16;     // pending requests of one requester
inline constexpr std::uint32_t most_seats = 512;

enum class SlotState : std::uint32_t {
  free,
  posted,  // the slot belongs to the delegatee
  done,    // holds the answer; the slot belongs to the requester again
};

struct alignas(64) Slot {
  std::atomic<SlotState> state;
  std::uint8_t operation;
  bool is_inline;
  Code code;  // of the answer: ok, or the error
  std::int32_t sys_errno;
  std::array<std::int64_t, 3> arguments;
  std::uint64_t address;  // of the payload, if it is not in the slot
  std::uint64_t len_bytes;
  std::int64_t value;
  alignas(64) std::array<std::byte, most_inline> payload;
};
static_assert(offsetof(Slot, payload) == 64, "a request without payload is one cache line");

// The owner of a seat, in one word, so that a requester that dies cannot leave half of it.
struct Holder {
  static constexpr std::uint64_t leaving = std::uint64_t{1} << 63;  // set by the requester
  static constexpr std::uint64_t refused = std::uint64_t{1} << 62;  // set by the delegatee

  std::int32_t pid = 0;
  std::int32_t task = -1;  // its number in a space; -1: no task

  [[nodiscard]] std::uint64_t word() const {
    return static_cast<std::uint64_t>(task + 1) << 32 | static_cast<std::uint32_t>(pid);
  }
  [[nodiscard]] static Holder of(std::uint64_t word) {
    return {static_cast<std::int32_t>(word & 0xffffffff),
            static_cast<std::int32_t>((word & ~(leaving | refused)) >> 32) - 1};
  }
};

struct alignas(64) Seat {
  std::atomic<std::uint64_t> holder;  // 0: free
  Event event;                        // the requester's
  std::array<Slot, ring_depth> slots;
};

struct alignas(64) Desk {
  std::atomic<std::uint64_t> magic;  // written last
  std::uint32_t seat_count;
  ProcessIdentity process;  // the delegatee's
  std::atomic<std::uint32_t> closed;
  alignas(64) std::atomic<std::uint32_t> changes;  // counts seats taken and left
  alignas(64) Event event;                         // the delegatee's

  [[nodiscard]] static std::size_t len_bytes(std::uint32_t seat_count) {
    return sizeof(Desk) + seat_count * sizeof(Seat);
  }
  [[nodiscard]] std::span<Seat> seats() { return {reinterpret_cast<Seat*>(this + 1), seat_count}; }
  void tell_of_change() {
    changes.fetch_add(1, std::memory_order_seq_cst);
    event.wake();
  }
};

// Operation numbers: the first are Shima's, the others the program's. A handler is also called when
// a requester has left or died.
inline constexpr int operation_left = 0;
inline constexpr int operation_file_read = 1;
inline constexpr int operation_file_write = 2;
inline constexpr int operation_file_sync = 3;
inline constexpr int first_net_operation = 4;  // to 31: for a delegatee that is an MPI process
inline constexpr int first_own_operation = 32;
inline constexpr int operation_count = 256;

}  // namespace shima::delegate
