// From Results to what a C program gets: a number and words.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace shima::capi {

// The PFF_ERR_ of an error, whose words this thread can then ask for.
[[nodiscard]] int report(const Error& error);

// What every entry is inside of: a value of its own (0 for a Status), or what `say` makes of its
// error. Nothing is thrown past it.
template <auto say, class Body>
[[nodiscard]] auto guarded_by(Body body) noexcept {
  using Value = typename decltype(body())::value_type;
  const auto result = caught(body);
  if constexpr (std::is_void_v<Value>) {
    return result ? 0 : say(result.error());
  } else {
    return result ? *result : static_cast<Value>(say(result.error()));
  }
}

template <class Body>
[[nodiscard]] auto guarded(Body body) noexcept {
  return guarded_by<&report>(std::move(body));
}

}  // namespace shima::capi
