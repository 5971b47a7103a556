#include "pvas/shared/share_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <string>

namespace shima::pvas {
namespace {

// A chunk's word: its kind in the lowest byte, and above that
//   for a slab: the size class of its slots (8 bits), and how many are allocated or being allocated
//   (32 bits); for the first chunk of a run: the number of its chunks.
enum class Kind : std::uint8_t { free, slab, first_of_run, taken };

constexpr unsigned kind_bits = 8;
constexpr std::uint64_t one_slot = std::uint64_t{1} << 16;
constexpr std::uint64_t taken = static_cast<std::uint64_t>(Kind::taken);

Kind kind_of(std::uint64_t state) { return static_cast<Kind>(state & 0xff); }
std::size_t class_of(std::uint64_t state) { return state >> kind_bits & 0xff; }
std::uint64_t slots_taken(std::uint64_t state) { return state >> 16; }
std::uint64_t slots_of(std::size_t size_class) {
  return chunk_bytes / (smallest_slot << size_class);
}

std::uint64_t slab_state(std::size_t size_class, std::uint64_t slots) {
  return static_cast<std::uint64_t>(Kind::slab) | std::uint64_t{size_class} << kind_bits |
         slots * one_slot;
}
std::uint64_t run_state(std::uint64_t chunks) {
  return static_cast<std::uint64_t>(Kind::first_of_run) | chunks << kind_bits;
}

std::unexpected<Error> not_allocated() {
  return fail(Code::bad_argument, "this address was not allocated");
}
std::unexpected<Error> no_room(std::uint64_t bytes) {
  return fail(Code::no_memory, "no " + std::to_string(bytes) + " bytes of shared memory are left");
}

}  // namespace

Result<void*> ShareHeap::take(std::size_t size) {
  if (size == 0)
    return fail(Code::bad_argument,
                "allocating 0 bytes of shared memory; the size must be positive");
  if (size <= largest_slot) {
    const std::size_t slot = std::bit_ceil(std::max(size, smallest_slot));
    return take_slot(static_cast<std::size_t>(std::countr_zero(slot / smallest_slot)));
  }
  if (size > states_.size() * chunk_bytes) return no_room(size);
  return take_run((size + chunk_bytes - 1) / chunk_bytes);
}

// ---- slots of slabs
// ------------------------------------------------------------------------------

// A slot is counted before it is marked, and unmarked before it is uncounted. So a process that has
// counted a slot finds one, and a slab whose count is zero has no marks.
bool ShareHeap::reserve_slot(std::uint64_t chunk, std::size_t size_class) {
  std::uint64_t state = states_[chunk];
  while (kind_of(state) == Kind::slab && class_of(state) == size_class &&
         slots_taken(state) < slots_of(size_class))
    if (states_[chunk].compare_exchange_weak(state, state + one_slot)) return true;
  return false;
}

void* ShareHeap::mark_slot(std::uint64_t chunk, std::size_t size_class) {
  const std::uint64_t slots = slots_of(size_class);
  for (std::uint64_t word = 0;; word = (word + 1) % ((slots + 63) / 64)) {
    const std::uint64_t there =
        slots - word * 64 >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << slots % 64) - 1;
    auto& marks = bits_[chunk][word];
    for (std::uint64_t free = ~marks.load() & there; free != 0; free = ~marks.load() & there) {
      const std::uint64_t bit = free & -free;
      if ((marks.fetch_or(bit) & bit) != 0) continue;  // another process took it
      const auto slot = word * 64 + static_cast<unsigned>(std::countr_zero(bit));
      head_->last_slab[size_class].store(chunk, std::memory_order_relaxed);
      return memory_ + chunk * chunk_bytes + slot * (smallest_slot << size_class);
    }
  }
}

Result<void*> ShareHeap::take_slot(std::size_t size_class) {
  for (;;) {
    const std::uint64_t used = head_->used_chunks;
    const std::uint64_t begin = head_->last_slab[size_class].load(std::memory_order_relaxed);
    std::uint64_t free = used;
    for (std::uint64_t i = 0; i < used; ++i) {
      const std::uint64_t chunk = (begin + i) % used;
      if (reserve_slot(chunk, size_class)) return mark_slot(chunk, size_class);
      if (states_[chunk] == 0) free = std::min(free, chunk);
    }
    if (free == used && !extend(used, 1)) return no_room(smallest_slot << size_class);
    std::uint64_t nothing = 0;
    if (states_[free].compare_exchange_strong(nothing, slab_state(size_class, 1)))
      return mark_slot(free, size_class);
  }
}

// An empty slab becomes free unless slots were last taken from it: a program that alternates
// between allocating and freeing would otherwise create and clear a slab every time.
Status ShareHeap::give_slot(std::uint64_t chunk, std::uint64_t state, std::size_t offset) {
  const std::size_t size_class = class_of(state);
  const std::size_t slot_bytes = smallest_slot << size_class;
  const std::size_t slot = offset / slot_bytes;
  const std::uint64_t bit = std::uint64_t{1} << slot % 64;
  if (offset % slot_bytes != 0 || (bits_[chunk][slot / 64].fetch_and(~bit) & bit) == 0)
    return not_allocated();
  for (state = states_[chunk];;) {
    const bool goes = slots_taken(state) == 1 &&
                      head_->last_slab[size_class].load(std::memory_order_relaxed) != chunk;
    if (!states_[chunk].compare_exchange_weak(state, goes ? taken : state - one_slot)) continue;
    if (goes) {
      drop_pages(chunk, 1);
      states_[chunk] = 0;
    }
    return {};
  }
}

// ---- runs of chunks
// ------------------------------------------------------------------------------

// Adds chunks that were never used; false if there are not enough.
bool ShareHeap::extend(std::uint64_t seen, std::uint64_t chunks) {
  if (chunks > states_.size() - seen) return head_->used_chunks != seen;
  head_->used_chunks.compare_exchange_strong(seen, seen + chunks);
  return true;
}

bool ShareHeap::claim(std::uint64_t first, std::uint64_t chunks) {
  for (std::uint64_t i = 0; i < chunks; ++i) {
    std::uint64_t nothing = 0;
    if (states_[first + i].compare_exchange_strong(nothing, taken)) continue;
    while (i > 0) states_[first + --i] = 0;
    return false;
  }
  states_[first] = run_state(chunks);
  return true;
}

Result<void*> ShareHeap::take_run(std::uint64_t chunks) {
  for (;;) {
    const std::uint64_t used = head_->used_chunks;
    std::uint64_t free = 0;  // length of the free run before `chunk`
    for (std::uint64_t chunk = 0; chunk < used && free < chunks;) {
      free = states_[chunk] == 0 ? free + 1 : 0;
      ++chunk;
      if (free == chunks && claim(chunk - chunks, chunks))
        return memory_ + (chunk - chunks) * chunk_bytes;
      if (free == chunks) free = 0;
    }
    if (!extend(used, chunks - free)) return no_room(chunks * chunk_bytes);
  }
}

Status ShareHeap::give_run(std::uint64_t chunk, std::uint64_t state, std::size_t offset) {
  if (offset != 0 || !states_[chunk].compare_exchange_strong(state, taken)) return not_allocated();
  const std::uint64_t chunks = state >> kind_bits;
  drop_pages(chunk, chunks);
  for (std::uint64_t i = 0; i < chunks; ++i) states_[chunk + i] = 0;
  return {};
}

// The caller owns these chunks exclusively. The kernel can only drop pages that have been mapped;
// lazy mapping works in blocks of many chunks. Memory that is not dropped is merely kept.
void ShareHeap::drop_pages(std::uint64_t chunk, std::uint64_t chunks) const {
  constexpr std::uint64_t stride = 16;
  std::byte* const begin = memory_ + chunk * chunk_bytes;
  for (std::uint64_t i = 0; i < chunks; i += stride)
    static_cast<void>(*static_cast<volatile std::byte*>(begin + i * chunk_bytes));
  static_cast<void>(*static_cast<volatile std::byte*>(begin + chunks * chunk_bytes - 1));
  ::madvise(begin, chunks * chunk_bytes, MADV_REMOVE);
}

Status ShareHeap::give(void* address) {
  auto* const at = static_cast<std::byte*>(address);
  if (at < memory_ || at >= memory_ + states_.size() * chunk_bytes) return not_allocated();
  const auto offset = static_cast<std::size_t>(at - memory_);
  const std::uint64_t chunk = offset / chunk_bytes;
  const std::uint64_t state = states_[chunk];
  switch (kind_of(state)) {
    case Kind::slab:
      return give_slot(chunk, state, offset % chunk_bytes);
    case Kind::first_of_run:
      return give_run(chunk, state, offset % chunk_bytes);
    default:
      return not_allocated();
  }
}

}  // namespace shima::pvas
