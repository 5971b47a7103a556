// System calls for code that runs without a C library: in a task before its own libc has started,
// or inside a call of its libc, and always with a thread pointer that is not its own. The code must
// not touch errno or call a library.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace shima::pvas::bare {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline bool failed(long result) { return result < 0 && result >= -4095; }

template <class T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

}  // namespace shima::pvas::bare
