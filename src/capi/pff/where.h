// From a pff_where to a Slice. A stride costs the same whatever it names.
#pragma once

#include "pattern/pattern.h"
#include "shima/pff.h"

namespace shima::capi {

// bad_argument, with the rule that is broken: elements and strides that overlap are allowed,
// offsets beyond 2^62 are not, nor counts that no address space holds. Keeps no reference to what
// `where` points to.
[[nodiscard]] Result<Slice> slice_of(const pff_where& where);

}  // namespace shima::capi
