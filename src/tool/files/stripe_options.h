// What the command line says about striping, as hints.
//
// `--stripe unit=1M,targets=4,order=a+b` is short for striping_unit, striping_factor and
// shima_targets; each `--region 64K:1M:4` begins another region. Files are then striped by the same
// rules as those that a program creates with these hints.
#pragma once

#include <string>
#include <vector>

#include "file/hints.h"
#include "tool/common/failure.h"

namespace shima::tool {

struct StripeOptions {
  std::string stripe;                // "unit=SIZE,targets=N,order=A+B"
  std::string order;                 // "A,B"
  std::vector<std::string> regions;  // "BEGIN:UNIT:TARGETS"

  [[nodiscard]] bool given() const { return !stripe.empty() || !order.empty() || !regions.empty(); }
};

// Only what is said; everything else is at its default.
[[nodiscard]] Outcome<Hints> stripe_hints(const StripeOptions& options);

// The same so that a file is striped even where no targets are configured: beside itself.
[[nodiscard]] Outcome<Hints> with_some_targets(Hints hints);

}  // namespace shima::tool
