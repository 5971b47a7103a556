// From Results to what a C program gets: a number, and nothing thrown past the entry.
#pragma once

#include <type_traits>

#include "base/result.h"

namespace shima::capi {

// What every entry is inside of: a value of its own (0 for a Status), or the code that `report`
// makes of its error.
template <auto report, class Body>
[[nodiscard]] auto guarded_by(Body body) noexcept {
  using Value = typename decltype(body())::value_type;
  const auto result = caught(body);
  if constexpr (std::is_void_v<Value>) {
    return result ? 0 : report(result.error());
  } else {
    return result ? *result : static_cast<Value>(report(result.error()));
  }
}

}  // namespace shima::capi
