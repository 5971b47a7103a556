// From a Result to the return value of a C function; no exception passes the entry point.
#pragma once

#include <type_traits>

#include "base/result.h"

namespace shima::capi {

// Runs the body of an entry point: returns its value (0 for a Status), or the code that `report`
// returns for its error.
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
