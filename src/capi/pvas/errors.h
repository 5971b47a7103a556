// The error codes and messages of pvas.h and delegate.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// Returns the PVAS_ERR_ code of an error, and keeps its message for this thread.
[[nodiscard]] int report_pvas(const Error& error);

template <class Body>
[[nodiscard]] auto guarded_pvas(Body body) noexcept {
  return guarded_by<&report_pvas>(std::move(body));
}

}  // namespace shima::capi
