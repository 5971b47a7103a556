#include "pvas/root/inside/task_break.h"

#include <sys/mman.h>

#include "pvas/root/inside/bare.h"

namespace shima::pvas {
namespace {

constexpr std::uint64_t page = 4096;

std::uint64_t page_end(std::uint64_t address) { return (address + page - 1) & ~(page - 1); }

bool map(std::uint64_t begin, std::uint64_t end, long protection) {
  constexpr long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return !bare::failed(bare::call(SYS_mmap, static_cast<long>(begin),
                                  static_cast<long>(end - begin), protection, flags, -1, 0));
}

void unmap(std::uint64_t begin, std::uint64_t end) {
  bare::call(SYS_munmap, static_cast<long>(begin), static_cast<long>(end - begin));
}

}  // namespace

std::uint64_t move_break(Heap& heap, std::uint64_t wanted) {
  const std::uint64_t now = heap.now;
  if (wanted < heap.begin || wanted > heap.end - readable_behind_break) return now;
  const std::uint64_t old_end = page_end(now);
  const std::uint64_t new_end = page_end(wanted);
  if (new_end < old_end) unmap(new_end, old_end + readable_behind_break);
  if (new_end > old_end && !map(old_end, new_end, PROT_READ | PROT_WRITE)) return now;
  // The readable pages are optional: without them the heap still works.
  if (new_end != old_end) map(new_end, new_end + readable_behind_break, PROT_READ);
  heap.now = wanted;
  return wanted;
}

}  // namespace shima::pvas
