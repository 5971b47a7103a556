// From a pff_where to a Slice. The cost of a stride does not depend on its count.
#pragma once

#include "pattern/pattern.h"
#include "shima/pff.h"

namespace shima::capi {

// bad_argument names the broken rule: overlapping elements and strides are allowed, offsets beyond
// 2^62 and counts beyond an address space are not. Keeps no reference to the memory of `where`.
[[nodiscard]] Result<Slice> slice_of(const pff_where& where);

}  // namespace shima::capi
