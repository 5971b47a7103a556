// The few functions of a C library that compilers call on their own. The barrier in each loop keeps
// them from replacing the loop by a call of the function that contains it.
#include <cstddef>

#define SHIMA_KEEP_LOOP asm volatile("" ::: "memory")

extern "C" {

__attribute__((visibility("hidden"))) void* memcpy(void* to, const void* from, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    SHIMA_KEEP_LOOP;
  }
  return to;
}

__attribute__((visibility("hidden"))) void* memset(void* to, int value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    static_cast<char*>(to)[i] = static_cast<char>(value);
    SHIMA_KEEP_LOOP;
  }
  return to;
}

__attribute__((visibility("hidden"))) int memcmp(const void* a, const void* b, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const int difference =
        static_cast<const unsigned char*>(a)[i] - static_cast<const unsigned char*>(b)[i];
    if (difference != 0) return difference;
  }
  return 0;
}

__attribute__((visibility("hidden"))) void* memchr(const void* in, int wanted, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (static_cast<const unsigned char*>(in)[i] == static_cast<unsigned char>(wanted))
      return const_cast<char*>(static_cast<const char*>(in)) + i;
  return nullptr;
}

__attribute__((visibility("hidden"))) std::size_t strlen(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') {
    ++size;
    SHIMA_KEEP_LOOP;
  }
  return size;
}
}
