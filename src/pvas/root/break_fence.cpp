#include "pvas/root/break_fence.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "pvas/elf_image.h"
#include "pvas/root/load.h"

namespace shima::pvas {

namespace {

// A task that lowers the break takes pages from here, and not from the root's heap: UCX does, when
// it tries out whether it sees such calls.
constexpr std::uint64_t spare_bytes = std::uint64_t{4} << 20;
std::uint64_t fence = 0;

}  // namespace

Status fence_program_break() {
  // The root's own malloc must not make room below the fence either.
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  const auto now = reinterpret_cast<std::uint64_t>(::sbrk(0));
  const std::uint64_t end = page_up(now) + spare_bytes;
  if (end > now && ::sbrk(static_cast<intptr_t>(end - now)) == reinterpret_cast<void*>(-1))
    return fail_errno(errno, "moving the program break to the end of a page");
  // The kernel keeps the break a page away from what is mapped above.
  SHIMA_TRY(map_pages(end + page_bytes, page_bytes, PROT_NONE));
  if (::sbrk(static_cast<intptr_t>(page_bytes)) != reinterpret_cast<void*>(-1))
    return fail(Code::unsupported_operation, "the program break moves although there is no room");
  fence = end;
  return {};
}

void mend_program_break() { ::syscall(SYS_brk, fence); }

}  // namespace shima::pvas
