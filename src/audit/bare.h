// System calls, paths and environment without a C library.
//
// The audit library is loaded into every process that a job starts, in a separate namespace: a libc
// would be mapped and initialised there each time.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace shima::audit {

inline constexpr std::size_t longest_path = 4096;

inline long system_call(long number, long a, long b, long c, long d) {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
  return ::syscall(number, a, b, c, d);
#endif
}

// A path under construction; `ok` is false once it did not fit.
struct Path {
  char text[longest_path];
  std::size_t size = 0;
  bool ok = true;

  void clear() {
    size = 0;
    ok = true;
    text[0] = '\0';
  }
  void add(std::string_view more) {
    ok = ok && more.size() < longest_path - size;
    if (!ok) return;
    for (const char c : more) text[size++] = c;
    text[size] = '\0';
  }
  void set(std::string_view other) {
    clear();
    add(other);
  }
  [[nodiscard]] std::string_view view() const { return {text, size}; }
};

// The directory part of a path, without the last '/'.
[[nodiscard]] inline std::string_view directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  path.remove_suffix(path.size() - (slash == 0 ? 1 : slash));
  return path;
}

[[nodiscard]] bool is_readable(const char* path);
// The path of the running program.
void read_own_program(Path& path);
void write_error(std::string_view text);

}  // namespace shima::audit
