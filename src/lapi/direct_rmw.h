// Atomic read-modify-write on a variable of this address space.
#pragma once

#include <lapi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace shima::lapi {

template <class Word>
[[nodiscard]] Word rmw_word(RMW_ops_t operation, std::uint64_t variable,
                            const std::array<std::uint64_t, 2>& input) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(variable));
  const auto first = static_cast<Word>(input[0]);
  switch (operation) {
    case FETCH_AND_ADD:
      return word.fetch_add(first);
    case FETCH_AND_OR:
      return word.fetch_or(first);
    case SWAP:
      return word.exchange(first);
    case COMPARE_AND_SWAP: {
      Word expected = first;
      return word.compare_exchange_strong(expected, static_cast<Word>(input[1])) ? 1 : 0;
    }
  }
  return 0;
}

// The previous value, or for COMPARE_AND_SWAP whether it was swapped.
[[nodiscard]] inline std::uint64_t rmw_here(RMW_ops_t operation, std::uint32_t size_bits,
                                            std::uint64_t variable,
                                            const std::array<std::uint64_t, 2>& input) {
  return size_bits == 64 ? rmw_word<std::uint64_t>(operation, variable, input)
                         : rmw_word<std::uint32_t>(operation, variable, input);
}

inline void store_previous(void* place, std::uint32_t size_bits, std::uint64_t value) {
  const auto narrow = static_cast<std::uint32_t>(value);
  if (place == nullptr) return;
  if (size_bits == 64)
    std::memcpy(place, &value, sizeof value);
  else
    std::memcpy(place, &narrow, sizeof narrow);
}

}  // namespace shima::lapi
