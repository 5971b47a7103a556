// A way to the memory of other tasks, which the caller cannot or shall not map.
//
// The caller has checked the range and the protection.
#pragma once

#include <lapi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace shima::dsm {

struct Rmw {
  RMW_ops_t operation = FETCH_AND_ADD;
  std::uint32_t size_bits = 64;
  std::array<std::uint64_t, 2> input{};
};

class Way {
 public:
  Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  virtual ~Way() = default;

  [[nodiscard]] virtual Status read(int task, std::uint64_t offset, std::span<std::byte> into) = 0;
  // Returns when the data may be reused; if `complete`, when it is in the target's memory.
  [[nodiscard]] virtual Status write(int task, std::uint64_t offset,
                                     std::span<const std::byte> data, bool complete) = 0;
  // The previous value; of COMPARE_AND_SWAP whether it was swapped.
  [[nodiscard]] virtual Result<std::uint64_t> rmw(int task, std::uint64_t offset,
                                                  const Rmw& request) = 0;
  // Waits until all that has been written is in the targets' memory.
  [[nodiscard]] virtual Status fence() = 0;
  // Bytes written that had not arrived at the last fence.
  [[nodiscard]] virtual std::uint64_t lost_bytes() { return 0; }
};

}  // namespace shima::dsm
