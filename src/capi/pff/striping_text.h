// Converts between a pff_striping and the text of the hint shima_regions.
#pragma once

#include <span>
#include <string>

#include "layout/master_file.h"
#include "shima/pff.h"

namespace shima::capi {

// The text of that hint. Its reader validates the contents.
[[nodiscard]] Result<std::string> text_of(const pff_striping& striping);

// One block of memory, to be freed by pff_striping_free.
[[nodiscard]] Result<pff_striping*> striping_from(std::span<const StripedRegion> regions);

}  // namespace shima::capi
