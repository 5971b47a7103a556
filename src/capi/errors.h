// From Results to what a C program gets: a number and words.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace shima::capi {

// The PFF_ERR_ of an error, whose words this thread can then ask for.
[[nodiscard]] int report(const Error& error);

// What every entry is inside of: a value of its own (0 for a Status), or the code of its error.
// Nothing is thrown past it.
template <class Body>
[[nodiscard]] auto guarded(Body body) noexcept {
  using Value = typename decltype(body())::value_type;
  const auto result = caught(body);
  if constexpr (std::is_void_v<Value>) {
    return result ? 0 : report(result.error());
  } else {
    return result ? *result : static_cast<Value>(report(result.error()));
  }
}

}  // namespace shima::capi
