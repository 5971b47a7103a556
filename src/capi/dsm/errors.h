// The error codes and messages of dsm.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// Returns the DSM_ERR_ code of an error, and keeps its message for this thread.
[[nodiscard]] int report_dsm(const Error& error);

template <class Body>
[[nodiscard]] auto guarded_dsm(Body body) noexcept {
  return guarded_by<&report_dsm>(std::move(body));
}

}  // namespace shima::capi
