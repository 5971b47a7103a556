// The error codes and messages of pvas.h and delegate.h.
#pragma once

#include <utility>

#include "capi/guard.h"

namespace shima::capi {

// The PVAS_ERR_ of an error, whose words this thread can then ask for.
[[nodiscard]] int report_pvas(const Error& error);

template <class Body>
[[nodiscard]] auto guarded_pvas(Body body) noexcept {
  return guarded_by<&report_pvas>(std::move(body));
}

}  // namespace shima::capi
