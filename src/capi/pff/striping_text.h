// A pff_striping is the same as the hint shima_regions, in a C program's own form.
#pragma once

#include <span>
#include <string>

#include "layout/master_file.h"
#include "shima/pff.h"

namespace shima::capi {

// As the text of that hint. What it means is checked by who reads the text.
[[nodiscard]] Result<std::string> text_of(const pff_striping& striping);

// In one piece of memory, to be freed by pff_striping_free.
[[nodiscard]] Result<pff_striping*> striping_from(std::span<const StripedRegion> regions);

}  // namespace shima::capi
