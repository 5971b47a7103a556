// Patches freshly mapped code: jumps to place_mapping through stubs.
#include <sys/syscall.h>

#include "pvas/root/loader/placing.h"

namespace shima::pvas {
namespace {

// A stub, with holes for addresses. It starts with the instructions that the jump replaced, which
// are part of the call: they set eax and other registers, or, in syscall(2), load the sixth
// argument. A call that needs no placing is executed in the stub itself, because clone must not
// return into a frame of ours.
asm(R"(
  .pushsection .rodata
  .global shima_stub_begin, shima_stub_window, shima_stub_function, shima_stub_back, shima_stub_end
shima_stub_begin:
  cmp $9, %eax    # mmap
  je 1f
  cmp $25, %eax   # mremap
  je 1f
  cmp $11, %eax   # munmap
  je 1f
  cmp $12, %eax   # brk
  je 1f
  cmp $30, %eax   # shmat
  je 1f
  cmp $59, %eax   # execve
  je 1f
  cmp $89, %eax   # readlink
  je 1f
  cmp $267, %eax  # readlinkat
  je 1f
  syscall
  jmp 2f
1:
  lea -128(%rsp), %rsp
  push %rbp
  mov %rsp, %rbp
  push %rdi
  push %rsi
  push %rdx
  push %r10
  push %r8
  push %r9
  mov %rsp, %rsi
  movslq %eax, %rdx
  movabs $0, %rdi
shima_stub_window:
  movabs $0, %rax
shima_stub_function:
  and $-16, %rsp
  cld
  call *%rax
  lea -48(%rbp), %rsp
  pop %r9
  pop %r8
  pop %r10
  pop %rdx
  pop %rsi
  pop %rdi
  pop %rbp
  lea 128(%rsp), %rsp
2:
  .byte 0xe9, 0, 0, 0, 0
shima_stub_back:
shima_stub_end:
  .popsection
)");
extern "C" {
extern const std::uint8_t shima_stub_begin[], shima_stub_window[], shima_stub_function[],
    shima_stub_back[], shima_stub_end[];
}

constexpr std::size_t jump_bytes = 5;
constexpr std::size_t syscall_bytes = 2;
constexpr std::size_t move_bytes = 3;
constexpr std::size_t most_moved = jump_bytes + 3 * move_bytes;

void put_word(std::uint8_t* end, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    end[static_cast<int>(i) - static_cast<int>(bytes)] =
        static_cast<std::uint8_t>(value >> (8 * i));
}

void put_jump(std::uint8_t* at, const std::uint8_t* to) {
  at[0] = 0xe9;
  put_word(at + jump_bytes, static_cast<std::uint64_t>(to - (at + jump_bytes)), 4);
}

bool is_syscall(const std::uint8_t* p) { return p[0] == 0x0f && p[1] == 0x05; }

// mov between two 64-bit registers: a prefix, the opcode, and an operand byte without memory.
bool is_move(const std::uint8_t* p) {
  return (p[0] & 0xf8) == 0x48 && p[1] == 0x89 && p[2] >= 0xc0;
}

bool is_redirected(int number) {
  return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap || number == SYS_brk ||
         number == SYS_shmat || number == SYS_execve || number == SYS_readlink ||
         number == SYS_readlinkat;
}

// How many bytes at `p` move to a stub: up to and including the syscall of a call that places, or
// 0. In glibc the sequence is "mov $number, %eax; syscall", in musl with moves in between; and the
// end of glibc's syscall(2) is "mov 8(%rsp), %r9; syscall".
std::size_t moved_bytes(const std::uint8_t* p) {
  if (p[0] == 0x4c && p[1] == 0x8b && p[2] == 0x4c && p[3] == 0x24 && p[4] == 8)
    return is_syscall(p + jump_bytes) ? jump_bytes : 0;
  if (p[0] != 0xb8 || p[3] != 0 || p[4] != 0 || !is_redirected(p[1] | p[2] << 8)) return 0;
  std::size_t moved = jump_bytes;
  while (moved + move_bytes <= most_moved && is_move(p + moved)) moved += move_bytes;
  return is_syscall(p + moved) ? moved : 0;
}

// Returns the length of the stub.
std::size_t write_stub(std::uint8_t* stub, std::uint8_t* site, std::size_t moved,
                       MappingArea* area) {
  const auto size = static_cast<std::size_t>(shima_stub_end - shima_stub_begin);
  for (std::size_t i = 0; i < moved; ++i) stub[i] = site[i];
  std::uint8_t* const rest = stub + moved;
  for (std::size_t i = 0; i < size; ++i) rest[i] = shima_stub_begin[i];
  put_word(rest + (shima_stub_window - shima_stub_begin), reinterpret_cast<std::uint64_t>(area), 8);
  put_word(rest + (shima_stub_function - shima_stub_begin),
           reinterpret_cast<std::uint64_t>(&shima_place_mapping), 8);
  put_jump(rest + (shima_stub_back - shima_stub_begin) - jump_bytes, site + moved + syscall_bytes);
  return moved + size;
}

// Whether one of eight bytes is 5, the second byte of a syscall instruction: a fast filter, because
// more than a megabyte of libc is scanned when a task starts.
bool has_five(const std::uint8_t* p) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  std::uint64_t word = 0;
  __builtin_memcpy(&word, p, sizeof word);
  word ^= 5 * ones;
  return ((word - ones) & ~word & (ones << 7)) != 0;
}

// How many bytes before a syscall move to a stub; 0 if the call does not place memory.
std::size_t moved_before(const std::uint8_t* syscall, std::size_t room) {
  for (std::size_t moved = jump_bytes; moved <= most_moved && moved <= room; moved += move_bytes)
    if (moved_bytes(syscall - moved) == moved) return moved;
  return 0;
}

}  // namespace

unsigned redirect_calls(std::uint8_t* code, std::size_t size, std::uint8_t* island,
                        MappingArea* area) {
  constexpr std::size_t stride = sizeof(std::uint64_t);
  const auto longest = static_cast<std::size_t>(shima_stub_end - shima_stub_begin) + most_moved;
  const std::uint8_t* const island_end = island + island_bytes;
  unsigned found = 0;
  for (std::size_t word = 0; word < size; word += stride) {
    const std::size_t end = word + stride < size ? word + stride : size;
    if (end - word == stride && !has_five(code + word)) continue;
    for (std::size_t i = word == 0 ? 1 : word; i < end; ++i) {
      if (!is_syscall(code + i - 1)) continue;
      const std::size_t moved = moved_before(code + i - 1, i - 1);
      if (moved == 0) continue;
      if (island + longest > island_end) return found;
      std::uint8_t* const site = code + i - 1 - moved;
      const std::size_t used = write_stub(island, site, moved, area);
      put_jump(site, island);
      island += used;
      ++found;
    }
  }
  return found;
}

}  // namespace shima::pvas
