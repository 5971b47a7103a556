// An object of the calling thread, made at the first use and deleted when the thread ends.
//
// It is on the heap: only a pointer is thread-local, so a library that a program opens while it
// runs needs little of the static TLS block. What runs later in a thread's end has none: the
// destructors of pthread keys.
#pragma once

#include <new>
#include <tuple>
#include <utility>

namespace shima {

// One object for each T and thread. Null if there is no memory, or no more.
template <class T>
T* thread_object() noexcept {
  static constinit thread_local T* made = nullptr;
  static constinit thread_local bool ended = false;
  if (made != nullptr) [[likely]]
    return made;
  struct AtThreadEnd {
    ~AtThreadEnd() {
      ended = true;
      delete std::exchange(made, nullptr);
    }
  };
  if (ended) return nullptr;
  static thread_local AtThreadEnd at_end;
  std::ignore = &at_end;
  return made = new (std::nothrow) T{};
}

}  // namespace shima
