// The memory that a process shows to `shima top`: counters, what it does, its files.
//
// Plain data; zero bytes are a valid initial state. The process writes without locks, readers read
// at any time. `version` changes with every change of the layout.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shima {

// What is counted, with bytes. Of waits, the bytes are nanoseconds.
enum class Counted : std::uint8_t {
  write,
  read,
  collective_write,
  collective_read,
  nonblocking_write,
  nonblocking_read,
  open,
  sync,
  put,
  get,
  active_message,
  rmw,
  dsm_write,
  dsm_read,
  dsm_rmw,
  served_write,
  served_read,
  served_other,
  wait,
};
inline constexpr std::size_t counted_kinds = 19;

// Their names in recordings and in JSON.
inline constexpr std::array<std::string_view, counted_kinds> counted_names{"writes",
                                                                           "reads",
                                                                           "collective_writes",
                                                                           "collective_reads",
                                                                           "nonblocking_writes",
                                                                           "nonblocking_reads",
                                                                           "opens",
                                                                           "syncs",
                                                                           "puts",
                                                                           "gets",
                                                                           "active_messages",
                                                                           "rmws",
                                                                           "dsm_writes",
                                                                           "dsm_reads",
                                                                           "dsm_rmws",
                                                                           "served_writes",
                                                                           "served_reads",
                                                                           "served_others",
                                                                           "waits"};

struct BoardTally {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> bytes;
};

// The counters of one thread, or of all other threads.
struct alignas(64) BoardLane {
  std::array<BoardTally, counted_kinds> tallies;
};

struct BoardFileLane {
  BoardTally written;
  BoardTally read;
};

struct alignas(64) BoardSlot {
  enum State : std::uint32_t { free, claimed, shown };
  static constexpr std::size_t name_bytes = 200;
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> met;  // collective calls begun
  std::atomic<std::uint64_t> key;  // the same in all tasks that have opened the file together
  std::array<BoardFileLane, 2> lanes;
  std::array<char, name_bytes> name;  // the end of a long one
};

enum class BoardKind : std::uint32_t { mpi, lapi, dsm, node, files };
inline constexpr std::array<std::string_view, 5> board_kind_names{"mpi", "lapi", "dsm", "node",
                                                                  "files"};

// Tells a reader that it has a whole text, which the task may change meanwhile.
[[nodiscard]] constexpr std::uint64_t board_digest(std::string_view text) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return digest;
}

struct BoardPage {
  static constexpr std::uint64_t magic_number = 0x4472616f426d6953;  // "SimBoarD"
  static constexpr std::uint32_t current_version = 2;
  static constexpr std::size_t slot_count = 32;
  static constexpr std::uint32_t no_slot = 0xffff;
  // A task that wakes to look runs this late at most, also with more tasks than cores.
  static constexpr std::uint64_t wait_gap_ns = 20'000'000;

  std::atomic<std::uint64_t> magic;  // stored last
  std::uint32_t version;
  std::uint32_t size_bytes;
  BoardKind kind;
  std::int32_t pid;
  std::atomic<std::int32_t> rank;   // -1: unknown
  std::atomic<std::int32_t> tasks;  // of the job; -1: unknown
  std::uint64_t started_ns;         // by the machine's monotonic clock
  std::array<char, 96> job;
  std::array<char, 64> host;
  std::array<char, 64> program;

  // What the first thread does: the number of calls so far, the slot, the call (observe/call.h).
  alignas(64) std::atomic<std::uint64_t> doing;
  std::atomic<std::uint64_t> asleep_since_ns;  // 0: it does not sleep in a wait
  // A wait is a series of sleeps inside one call with at most wait_gap_ns in between.
  std::atomic<std::uint64_t> wait_began_ns;
  std::atomic<std::uint64_t> last_sleep_end_ns;
  std::atomic<std::int32_t> waits_for;           // the number of a task + 1; 0: not known
  std::atomic<std::uint32_t> met;                // calls in which all tasks of the job meet
  alignas(64) std::atomic<std::int32_t> queued;  // operations in the background, requests served
  std::atomic<std::int32_t> clients;             // of an I/O node
  std::array<BoardLane, 2> lanes;                // the first thread's; all others'
  std::array<BoardSlot, slot_count> slots;
  // The hosts of the job's tasks, as far as this task knows: a list (base/process/host_list.h) that
  // ends at the last host that fits. To be believed if it has the digest.
  std::atomic<std::uint64_t> hosts_digest;
  std::array<char, 4096> hosts;
};

[[nodiscard]] constexpr std::uint64_t pack_doing(std::uint32_t serial, std::uint32_t slot,
                                                 std::uint16_t code) {
  return static_cast<std::uint64_t>(serial) << 32U |
         static_cast<std::uint64_t>(slot & 0xffffU) << 16U | code;
}

}  // namespace shima
