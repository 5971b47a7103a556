#include "pvas/root/inside/break_fence.h"

#include <sys/mman.h>

#include "pvas/root/inside/bare.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace shima::pvas {
namespace {

constexpr long page = 4096;

long break_now() { return bare::call(SYS_brk, 0); }

void put_fence(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  constexpr long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  const long end = (break_now() + page - 1) & -page;
  bare::call(SYS_mmap, end, page, PROT_NONE, flags, -1, 0);
}

// Runs before any constructor has allocated memory.
__attribute__((section(".preinit_array"), used)) void (*const fence_first)(int, char**,
                                                                           char**) = &put_fence;

}  // namespace

Status look_at_break_fence() {
  const long now = break_now();
  for (const long wanted : {now + page, now - page})
    if (bare::call(SYS_brk, wanted) != now)
      return fail(Code::unsupported_operation,
                  "the program break of a space's root can still be moved");
  return {};
}

}  // namespace shima::pvas
