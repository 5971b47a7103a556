// The error codes and messages of pff.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// Returns the PFF_ERR_ code of an error, and keeps its message for this thread.
[[nodiscard]] int report(const Error& error);

template <class Body>
[[nodiscard]] auto guarded(Body body) noexcept {
  return guarded_by<&report>(std::move(body));
}

}  // namespace shima::capi
