// Replaces operator new and delete in the command (not in the libraries that run in programs). The
// sizes are those that malloc uses, because delete does not always know what new was asked for.
#include "tool/simulate/count_allocations.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {

thread_local shima::simulate::Allocations counted;

// Null without memory.
void* allocate(std::size_t bytes) noexcept {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) return nullptr;
  ++counted.count;
  counted.bytes += ::malloc_usable_size(memory);
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) counted.freed_bytes += ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// The library's would call the one above, but that of a sanitizer does not.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { release(memory); }

namespace shima::tool {

simulate::Allocations count_allocations() { return counted; }

}  // namespace shima::tool
