// The shared state of a space, which its tasks and its root use.
//
// The root creates one SpaceState. Every task's partition begins with a Control that points to it.
// A task finds its Control by an entry of its auxiliary vector; unlike an environment variable,
// that entry is not inherited by programs that the task executes. All tasks write here: a word with
// several writers is atomic, and updates of more than one word hold a lock. The root releases the
// lock of a holder that has died.
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
  ended,  // the process has exited; its memory is held, or its starter has not released its number
};

struct alignas(64) Place {
  std::atomic<PlaceState> state;
  std::atomic<std::int32_t> pid;
};

// How the memory of the group's other spaces is mapped in this one.
enum class Sharing : std::int32_t {
  none,   // the space belongs to no group
  lazy,   // mapped on first touch
  eager,  // mapped at start
};

struct SpaceState {
  std::int32_t root_pid;
  std::int32_t slice;             // which of several spaces this is
  std::uint64_t first_partition;  // partition t begins at first_partition + t * partition_size
  std::uint64_t partition_size;
  std::uint64_t task_limit;
  std::array<char, 108> socket_name;  // abstract, without the zero before it
  std::array<Place, max_tasks> places;

  Commons* commons;  // null if the space is in no group
  std::uint32_t incarnation;
  Sharing sharing;

  NameTable names;  // of memory in this space

  // holds[t][h]: how many holds task h has on the memory of task t.
  std::array<std::array<std::atomic<std::uint16_t>, max_tasks>, max_tasks> holds;
};

// A task's program break (pvas/root/inside/task_break.h).
struct Heap {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t now;  // as the kernel's break; libc lets one thread at a time move it
};

// The address range for a task's mappings (pvas/root/loader/placing.h).
struct MappingArea {
  std::uint64_t begin;
  std::uint64_t end;
  std::atomic<std::uint64_t> next;
  Heap heap;
  char own_program[24];  // a link to the task's program: /dev/fd/N
};

// The first bytes of a partition.
struct Control {
  std::uint64_t magic;
  SpaceState* space_state;
  std::int32_t task;
  MappingArea area;
};

}  // namespace shima::pvas
