// An object of the calling thread, made at the first use and deleted when the thread ends.
//
// It is on the heap: only a pointer is thread-local, so a library that a program opens while it
// runs needs little of the static TLS block.
#pragma once

#include <new>
#include <tuple>
#include <utility>

namespace shima {

// One object for each T and thread. Null if there is no memory.
template <class T>
T* thread_object() noexcept {
  static constinit thread_local T* made = nullptr;
  if (made != nullptr) [[likely]]
    return made;
  struct AtThreadEnd {
    ~AtThreadEnd() { delete std::exchange(made, nullptr); }
  };
  static thread_local AtThreadEnd at_end;
  std::ignore = &at_end;
  return made = new (std::nothrow) T{};
}

}  // namespace shima
