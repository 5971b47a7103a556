// The striping options of the command line, as hints.
//
// `--stripe unit=1M,targets=4,order=a+b` is short for striping_unit, striping_factor and
// shima_targets; each `--region 64K:1M:4` begins another region. Files are then striped by the same
// rules as those that a program creates with these hints.
#pragma once

#include <string>
#include <vector>

#include "file/hints/hints.h"
#include "tool/common/failure.h"

namespace shima::tool {

struct StripeOptions {
  std::string stripe;                // "unit=SIZE,targets=N,order=A+B"
  std::string order;                 // "A,B"
  std::vector<std::string> regions;  // "BEGIN:UNIT:TARGETS"

  [[nodiscard]] bool given() const { return !stripe.empty() || !order.empty() || !regions.empty(); }
};

// Sets only what the options say; everything else stays at its default.
[[nodiscard]] Outcome<Hints> stripe_hints(const StripeOptions& options);

// The same, but striped even if no targets are configured: beside the file.
[[nodiscard]] Outcome<Hints> with_some_targets(Hints hints);

}  // namespace shima::tool
