// An allocator for memory that several address spaces map at the same address.
//
// It has no lock: a process that is killed inside a call leaves the heap usable; only the memory
// that it was allocating or freeing stays allocated. Memory is divided into chunks. A chunk is a
// slab of equal slots, or belongs to a run of chunks that is one allocation. One word per chunk
// holds its state, and changes by a single compare-and-swap.
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
// Bitmap of the allocated slots of a slab.
using SlabBits = std::array<std::atomic<std::uint64_t>, slab_words>;

// All zero: an empty heap.
struct HeapHead {
  std::atomic<std::uint64_t> used_chunks;                        // chunks above were never used
  std::array<std::atomic<std::uint64_t>, slot_sizes> last_slab;  // a hint: where a slot may be free
};

class ShareHeap {
 public:
  // `states`, `bits` and the chunks at `memory` belong together; all are in shared mappings of one
  // memfd.
  ShareHeap(HeapHead& head, std::span<ChunkState> states, SlabBits* bits, std::byte* memory)
      : head_(&head), states_(states), bits_(bits), memory_(memory) {}

  // Allocates `size` bytes (at most chunk_bytes), aligned to the next power of two; the contents
  // are undefined.
  [[nodiscard]] Result<void*> take(std::size_t size);
  // Frees memory that any process allocated.
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
