// Header handlers: which addresses and indices from other tasks may be called.
//
// An index has been registered by the program. An address must lie in executable memory of this
// process, so that a faulty or hostile peer can't make it jump to data. One in the copy of the
// program that another task of the address space has loaded means that place in this task's copy.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/result.h"
#include "lapi/own_memory.h"

namespace shima::lapi {

class Handlers {
 public:
  static constexpr int most = 64;  // indices 1 to 63

  void set(int index, void* handler);
  [[nodiscard]] void* get(int index);
  // The function that an address or an index in a message names.
  [[nodiscard]] Result<void*> find(std::uint64_t named);

 private:
  std::mutex mutex_;
  std::array<void*, most> table_{};
  OwnMemory memory_;
  // What addresses name here (own_code_at): most messages name the same few.
  std::array<std::pair<std::uint64_t, void*>, 4> recent_{};
  std::size_t oldest_ = 0;
};

}  // namespace shima::lapi
