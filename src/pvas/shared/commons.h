// Shared memory of the spaces of a group: a memfd that all of them map at the same address.
//
// Every root maps its beginning, with the words below, when it joins. The rest is what tasks
// allocate, mapped on first touch (pvas/root/loader/lazy_map.h) or at start. The memfd has no
// owner: it exists as long as any root has it open.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "pvas/shared/names.h"
#include "pvas/shared/share_heap.h"

namespace shima::pvas {

inline constexpr int max_slices = 8;

// The address range of spaces: far below programs (0x55...) and their mappings (0x7f...).
inline constexpr std::uint64_t tebi = std::uint64_t{1} << 40;
inline constexpr std::uint64_t region_begin = 16 * tebi;
inline constexpr std::uint64_t region_bytes = 64 * tebi;
inline constexpr std::uint64_t commons_begin = region_begin + region_bytes;
inline constexpr std::uint64_t commons_bytes = tebi;
static_assert(commons_begin + commons_bytes <= 0x550000000000);

inline constexpr std::uint64_t commons_magic = 0x53'50'56'43'00'00'00'01;
// The part that cannot be allocated; most of it is never touched.
inline constexpr std::uint64_t commons_head_bytes = std::uint64_t{16} << 30;
inline constexpr std::uint64_t commons_data_begin = commons_begin + commons_head_bytes;
inline constexpr std::uint64_t commons_data_bytes = commons_bytes - commons_head_bytes;
inline constexpr std::size_t commons_chunks = commons_data_bytes / chunk_bytes;

// A space of the group. Every root that joins gets a new incarnation, so that the remains of a dead
// root can be told from the state of its successor.
struct GroupSpace {
  std::atomic<std::uint32_t> incarnation;  // 0: no such space
  std::atomic<std::int32_t> root_pid;
};

struct Commons {
  std::uint64_t magic;
  std::int32_t slices;
  std::atomic<std::uint32_t> last_incarnation;
  std::array<GroupSpace, max_slices> members;
  NameTable names;
  HeapHead heap;
  std::array<ChunkState, commons_chunks> states;
  std::array<SlabBits, commons_chunks> bits;
};
static_assert(sizeof(Commons) <= commons_head_bytes);

[[nodiscard]] inline ShareHeap heap_of(Commons& commons) {
  return {commons.heap, commons.states, commons.bits.data(),
          reinterpret_cast<std::byte*>(&commons) + commons_head_bytes};
}

[[nodiscard]] inline bool is_shared(MemoryRange memory) {
  return memory.begin >= commons_data_begin && memory.size <= commons_data_bytes &&
         memory.begin - commons_data_begin <= commons_data_bytes - memory.size;
}

// The range of task numbers that an incarnation uses in the names of the group.
[[nodiscard]] inline std::uint32_t shared_number(std::uint32_t incarnation, int task) {
  return incarnation * incarnation_factor + static_cast<std::uint32_t>(task) + 1;
}

// Removes what a space that has ended left behind. Idempotent; any process may call it.
inline void forget_member(Commons& commons, int slice, std::uint32_t incarnation) {
  commons.names.forget(incarnation * incarnation_factor,
                       incarnation * incarnation_factor + incarnation_factor - 1);
  auto& seen = commons.members[static_cast<std::size_t>(slice)].incarnation;
  if (seen.compare_exchange_strong(incarnation, 0)) commons.names.announce();
}

}  // namespace shima::pvas
