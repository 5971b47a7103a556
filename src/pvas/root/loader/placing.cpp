#include "pvas/root/loader/placing.h"

#include <linux/shm.h>
#include <sys/mman.h>

#include "pvas/root/inside/bare.h"
#include "pvas/root/inside/task_break.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace shima::pvas {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;
constexpr int huge_shift_bit = 26;
constexpr int huge_shift_mask = 63;
constexpr int most_tries = 1 << 16;

constexpr std::uint64_t round_up(std::uint64_t x, std::uint64_t to) {
  return (x + to - 1) & ~(to - 1);
}

// Takes `size` bytes at the area's next address; 0 if they do not fit. At the end it starts again
// at the beginning, where ranges may have been unmapped. Only the kernel knows whether an address
// is free, so the mapping call is made not to replace anything. Skips `skip` bytes first.
std::uint64_t take_address(MappingArea& area, std::uint64_t size, std::uint64_t align,
                           std::uint64_t skip) {
  std::uint64_t next = area.next.load(std::memory_order_relaxed);
  for (;;) {
    std::uint64_t address = round_up(next + skip, align);
    if (address + size > area.end) address = round_up(area.begin, align);
    if (size > area.end - area.begin || address + size > area.end) return 0;
    if (area.next.compare_exchange_weak(next, address + size, std::memory_order_relaxed))
      return address;
  }
}

std::uint64_t alignment_for(std::uint64_t size, long flags) {
  if ((flags & MAP_HUGETLB) != 0) {
    const long shift = (flags >> huge_shift_bit) & huge_shift_mask;
    return shift != 0 ? std::uint64_t{1} << shift : huge_page;
  }
  return size >= huge_page ? huge_page : page;  // so that the kernel can use huge pages
}

// Tries `map(address)` at successive addresses until one is free. An occupied range may be much
// larger than what is needed, so the steps grow, and start again before they pass over the whole
// area.
template <class Map>
long map_somewhere(MappingArea& area, std::uint64_t size, std::uint64_t align, long taken,
                   Map map) {
  std::uint64_t skip = 0;
  for (int tries = 0; tries < most_tries; ++tries) {
    const std::uint64_t address = take_address(area, size, align, skip);
    if (address == 0) return -12;  // ENOMEM
    const long result = map(static_cast<long>(address));
    if (result != taken) return result;
    skip = skip < (area.end - area.begin) / 16 ? 2 * skip + size : 0;
  }
  return -12;
}

// The rest of `text` after `prefix`, or null.
const char* after(const char* text, const char* prefix) {
  while (*prefix != '\0') {
    if (*text++ != *prefix++) return nullptr;
  }
  return text;
}

// Most libraries call libc; but UCX's library that watches memory mappings makes system calls
// itself.
bool makes_system_calls(const char* name) {
  return after(name, "libc.") != nullptr || after(name, "libc-") != nullptr ||
         after(name, "libucm.") != nullptr;
}

bool is_of_interest(long fd) {
  char link[] = "/proc/self/fd/0000000000";
  char* digit = link + sizeof link - 2;
  unsigned long rest = static_cast<unsigned long>(fd);
  do {
    *digit-- = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  // The number is padded with zeros, which are no valid name: move it to the slash.
  char* to = link + sizeof "/proc/self/fd/" - 1;
  for (const char* from = digit + 1; (*to = *from) != '\0'; ++from) ++to;
  char path[512];
  const long size = bare::call(SYS_readlink, bare::word(link), bare::word(path), sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  long base = size;
  while (base > 0 && path[base - 1] != '/') --base;
  return makes_system_calls(path + base);
}

long map_at(MappingArea& area, std::uint64_t size, long protection, long flags) {
  return map_somewhere(area, size, page, -17, [&](long address) {
    return bare::call(SYS_mmap, address, static_cast<long>(size), protection,
                      flags | MAP_FIXED_NOREPLACE, -1, 0);
  });
}

// Patches code that ld.so has just mapped and that is not yet executed.
void take_over(MappingArea& area, long code, long size) {
  constexpr long read_write = PROT_READ | PROT_WRITE;
  constexpr long read_execute = PROT_READ | PROT_EXEC;
  const long island = map_at(area, island_bytes, read_write, MAP_PRIVATE | MAP_ANONYMOUS);
  if (bare::failed(island)) return;
  // If code cannot be made writable, the kernel places this libc's mappings.
  if (bare::call(SYS_mprotect, code, size, read_write) == 0) {
    redirect_calls(reinterpret_cast<std::uint8_t*>(code), static_cast<std::size_t>(size),
                   reinterpret_cast<std::uint8_t*>(island), &area);
    bare::call(SYS_mprotect, code, size, read_execute);
  }
  bare::call(SYS_mprotect, island, island_bytes, read_execute);
}

bool is_inside(const MappingArea& area, long address, long size = 1) {
  const auto at = static_cast<std::uint64_t>(address);
  return at >= area.begin && at < area.end && static_cast<std::uint64_t>(size) <= area.end - at;
}

long map_for(MappingArea& area, const CallRegisters& call) {
  constexpr long placed_by_caller = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT;
  const long flags = call.r10;
  if ((flags & placed_by_caller) != 0)
    return bare::call(SYS_mmap, call.rdi, call.rsi, call.rdx, flags, call.r8, call.r9);
  const std::uint64_t align = alignment_for(static_cast<std::uint64_t>(call.rsi), flags);
  const std::uint64_t size =
      round_up(static_cast<std::uint64_t>(call.rsi), align > huge_page ? align : page);
  if (call.rdi != 0 && is_inside(area, call.rdi, call.rsi)) {
    const long wished = bare::call(SYS_mmap, call.rdi, call.rsi, call.rdx,
                                   flags | MAP_FIXED_NOREPLACE, call.r8, call.r9);
    if (!bare::failed(wished)) return wished;
  }
  return map_somewhere(area, size, align, -17, [&](long address) {
    return bare::call(SYS_mmap, address, call.rsi, call.rdx, flags | MAP_FIXED_NOREPLACE, call.r8,
                      call.r9);
  });
}

long place_mmap(MappingArea& area, const CallRegisters& call) {
  const long result = map_for(area, call);
  const bool is_code = (call.rdx & PROT_EXEC) != 0 && (call.r10 & MAP_ANONYMOUS) == 0;
  if (!bare::failed(result) && is_code && is_of_interest(call.r8))
    take_over(area, result, call.rsi);
  return result;
}

// Grows in place if possible; otherwise moves to an address that is reserved first, because mremap
// replaces what is there.
long place_mremap(MappingArea& area, const CallRegisters& call) {
  const long flags = call.r10;
  if ((flags & MREMAP_FIXED) != 0 || (flags & MREMAP_MAYMOVE) == 0)
    return bare::call(SYS_mremap, call.rdi, call.rsi, call.rdx, flags, call.r8);
  const bool was_placed = is_inside(area, call.rdi);
  if ((flags & MREMAP_DONTUNMAP) == 0 && (!was_placed || is_inside(area, call.rdi, call.rdx))) {
    const long grown =
        bare::call(SYS_mremap, call.rdi, call.rsi, call.rdx, flags & ~MREMAP_MAYMOVE);
    if (!bare::failed(grown)) return grown;
  }
  const std::uint64_t size = round_up(static_cast<std::uint64_t>(call.rdx), page);
  const std::uint64_t align = alignment_for(size, 0);
  const long room = map_somewhere(area, size, align, -17, [&](long address) {
    return bare::call(SYS_mmap, address, static_cast<long>(size), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  });
  if (bare::failed(room)) return room;
  const long moved =
      bare::call(SYS_mremap, call.rdi, call.rsi, call.rdx, flags | MREMAP_FIXED, room);
  if (bare::failed(moved)) bare::call(SYS_munmap, room, static_cast<long>(size));
  return moved;
}

// Memory unmapped at the area's end is returned to the area, so that a program that alternates
// between mapping and unmapping gets the same address every time.
long place_munmap(MappingArea& area, const CallRegisters& call) {
  const long result = bare::call(SYS_munmap, call.rdi, call.rsi);
  const auto begin = static_cast<std::uint64_t>(call.rdi);
  std::uint64_t end = round_up(begin + static_cast<std::uint64_t>(call.rsi), page);
  if (result == 0 && is_inside(area, call.rdi))
    area.next.compare_exchange_strong(end, begin, std::memory_order_relaxed);
  return result;
}

long place_shmat(MappingArea& area, const CallRegisters& call) {
  if (call.rsi != 0) return bare::call(SYS_shmat, call.rdi, call.rsi, call.rdx);
  struct shmid64_ds info{};
  const long asked = bare::call(SYS_shmctl, call.rdi, IPC_STAT, bare::word(&info));
  if (bare::failed(asked)) return bare::call(SYS_shmat, call.rdi, 0, call.rdx);
  const std::uint64_t size = round_up(info.shm_segsz, page);
  return map_somewhere(area, size, alignment_for(size, 0), -22, [&](long address) {
    return bare::call(SYS_shmat, call.rdi, address, call.rdx);
  });
}

// ---- the program's own file -------------------------------------------------------------------

// "/proc/self/exe", or with the process ID, as realpath(3) uses.
bool names_own_program(const char* path) {
  const char* rest = after(path, "/proc/");
  if (rest == nullptr) return false;
  if (const char* end = after(rest, "self"); end != nullptr) return bare::same(end, "/exe");
  long number = 0;
  for (; *rest >= '0' && *rest <= '9' && number < 1'000'000'000; ++rest)
    number = number * 10 + (*rest - '0');
  return bare::same(rest, "/exe") && number == bare::call(SYS_getpid);
}

// /proc/self/exe is the root's. The task's own program is open under a number that the area
// knows; if the program has closed it, the kernel's answer is used.
long with_own_program(const MappingArea& area, const CallRegisters& call, long number) {
  CallRegisters other = call;
  long& path = number == SYS_readlinkat ? other.rsi : other.rdi;
  if (path != 0 && names_own_program(reinterpret_cast<const char*>(path))) {
    path = bare::word(area.own_program);
    const long result = bare::call(number, other.rdi, other.rsi, other.rdx, other.r10);
    if (!bare::failed(result)) return result;
  }
  return bare::call(number, call.rdi, call.rsi, call.rdx, call.r10);
}

}  // namespace

extern "C" long shima_place_mapping(MappingArea* area, const CallRegisters* registers,
                                    long number) {
  switch (number) {
    case SYS_mmap:
      return place_mmap(*area, *registers);
    case SYS_mremap:
      return place_mremap(*area, *registers);
    case SYS_munmap:
      return place_munmap(*area, *registers);
    case SYS_brk:
      return static_cast<long>(move_break(area->heap, static_cast<std::uint64_t>(registers->rdi)));
    case SYS_shmat:
      return place_shmat(*area, *registers);
    default:
      return with_own_program(*area, *registers, number);
  }
}

}  // namespace shima::pvas
