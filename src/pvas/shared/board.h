// What the tasks of a space and its root see of each other.
//
// The root makes one Board; every task's partition begins with a Control that leads to it, and a
// task finds its Control by an entry of its auxiliary vector: unlike an environment variable, that
// is not handed down to programs that a task executes. Everybody writes here, so a word that two
// may change is atomic, and what takes more than one word is changed under a lock, whose holder's
// death the root notices.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pvas/shared/commons.h"
#include "pvas/shared/names.h"

namespace shima::pvas {

inline constexpr std::uint64_t control_magic = 0x53'50'56'41'53'00'00'03;  // "SPVAS", version 3
inline constexpr unsigned long aux_control = 0x53'50'56'41;                // no a_type of Linux's
inline constexpr std::size_t max_tasks = 512;
static_assert(max_tasks < incarnation_factor);

enum class PlaceState : std::uint32_t {
  free,
  running,
  ended,  // the task is gone; somebody holds its memory, or has not let go of its number
};

struct alignas(64) Place {
  std::atomic<PlaceState> state;
  std::atomic<std::int32_t> pid;
};

// How memory of the group's other spaces is seen in this one.
enum class Sharing : std::int32_t {
  none,   // the space is in no group
  lazy,   // mapped where it is touched
  eager,  // mapped since the beginning
};

struct Board {
  std::int32_t root_pid;
  std::int32_t slice;             // which of several spaces this is
  std::uint64_t first_partition;  // partition t begins at first_partition + t * partition_size
  std::uint64_t partition_size;
  std::uint64_t task_limit;
  std::array<char, 108> socket_name;  // abstract, without the zero before it
  std::array<Place, max_tasks> places;

  Commons* commons;  // null where the space is in no group
  std::uint32_t incarnation;
  Sharing sharing;

  NameTable names;  // of memory of this space

  // holds[t][h]: how many times task h holds the memory of task t.
  std::array<std::array<std::atomic<std::uint16_t>, max_tasks>, max_tasks> holds;
};

// A task's program break (root/task_break.h).
struct Heap {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t now;  // like the kernel's, moved by one thread at a time: libc sees to it
};

// Where a task's mappings go (root/placing.h).
struct Window {
  std::uint64_t begin;
  std::uint64_t end;
  std::atomic<std::uint64_t> next;
  Heap heap;
  char own_program[24];  // a link to the task's program: /dev/fd/N
};

// The beginning of a partition.
struct Control {
  std::uint64_t magic;
  Board* board;
  std::int32_t task;
  Window window;
};

}  // namespace shima::pvas
