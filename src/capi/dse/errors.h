// The error codes and messages of dse.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// Returns the DSE_ERR_ code of an error, and keeps its message for this thread.
[[nodiscard]] int report_dse(const Error& error);

template <class Body>
[[nodiscard]] auto guarded_dse(Body body) noexcept {
  return guarded_by<&report_dse>(std::move(body));
}

}  // namespace shima::capi
