// As capi/errors.h, with the codes of pvas.h.
#pragma once

#include "base/result.h"
#include "capi/errors.h"

namespace shima::capi {

// The PVAS_ERR_ of an error, whose words this thread can then ask for.
[[nodiscard]] int report_pvas(const Error& error);

template <class Body>
[[nodiscard]] auto guarded_pvas(Body body) noexcept {
  return guarded_by<&report_pvas>(std::move(body));
}

}  // namespace shima::capi
