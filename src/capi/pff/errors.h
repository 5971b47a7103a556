// The error codes and messages of pff.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// The PFF_ERR_ of an error, whose words this thread can then ask for.
[[nodiscard]] int report(const Error& error);

template <class Body>
[[nodiscard]] auto guarded(Body body) noexcept {
  return guarded_by<&report>(std::move(body));
}

}  // namespace shima::capi
