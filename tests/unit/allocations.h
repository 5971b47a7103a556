// Counts the allocations of a test program; for its only source.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::size_t allocations = 0;
}
// Every allocation of this program; what malloc returns is what free takes.
[[gnu::noinline]] void* operator new(std::size_t len_bytes) {
  ++allocations;
  void* const memory = std::malloc(len_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
