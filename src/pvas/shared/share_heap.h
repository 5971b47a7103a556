// An allocator for memory that several address spaces map at one place.
//
// There is no lock: whoever is killed in the middle of a call leaves everything as usable as
// before, but for what it was just taking or giving back, which stays taken. Memory is cut into
// chunks. A chunk is a slab of equal slots, or belongs to a run of chunks that is one allocation;
// what it is stands in one word, which changes by one compare-and-swap.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace shima::pvas {

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
inline constexpr std::size_t smallest_slot = 16;
inline constexpr std::size_t slot_sizes = 12;  // 16 bytes, 32, ... 32 KiB
inline constexpr std::size_t largest_slot = smallest_slot << (slot_sizes - 1);
inline constexpr std::size_t slab_words = chunk_bytes / smallest_slot / 64;

using ChunkState = std::atomic<std::uint64_t>;
// Which slots of a slab are taken.
using SlabBits = std::array<std::atomic<std::uint64_t>, slab_words>;

// All zero is an empty heap.
struct HeapHead {
  std::atomic<std::uint64_t> used_chunks;                        // those behind were never taken
  std::array<std::atomic<std::uint64_t>, slot_sizes> last_slab;  // where there may be a free slot
};

class ShareHeap {
 public:
  // `states`, `bits` and the chunks at `memory` go together; all of them lie in shared mappings of
  // a file in memory.
  ShareHeap(HeapHead& head, std::span<ChunkState> states, SlabBits* bits, std::byte* memory)
      : head_(&head), states_(states), bits_(bits), memory_(memory) {}

  // Memory of `size` bytes, aligned to the power of two that holds them, at most chunk_bytes. What
  // it contains is not said.
  [[nodiscard]] Result<void*> take(std::size_t size);
  // Gives it back, whoever has taken it.
  [[nodiscard]] Status give(void* address);

 private:
  [[nodiscard]] Result<void*> take_slot(std::size_t size_class);
  [[nodiscard]] Result<void*> take_run(std::uint64_t chunks);
  [[nodiscard]] bool reserve_slot(std::uint64_t chunk, std::size_t size_class);
  [[nodiscard]] void* mark_slot(std::uint64_t chunk, std::size_t size_class);
  [[nodiscard]] bool claim(std::uint64_t first, std::uint64_t chunks);
  [[nodiscard]] bool extend(std::uint64_t seen, std::uint64_t chunks);
  [[nodiscard]] Status give_slot(std::uint64_t chunk, std::uint64_t state, std::size_t offset);
  [[nodiscard]] Status give_run(std::uint64_t chunk, std::uint64_t state, std::size_t offset);
  void drop_pages(std::uint64_t chunk, std::uint64_t chunks) const;

  HeapHead* head_;
  std::span<ChunkState> states_;
  SlabBits* bits_;
  std::byte* memory_;
};

}  // namespace shima::pvas
