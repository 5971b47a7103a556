// From hints to the regions of a new striped file.
//
// Striping is asked for by naming targets (shima_targets), or by striping_factor where targets are
// configured; without either the striping hints are left alone, since programs carry them for other
// file systems. The order of targets is that of shima_targets, or else of the configuration,
// beginning with number start_iodevice; where more subfiles are asked for than there are targets,
// these come again. shima_regions "0:64K:1,64K:1M:4" cuts the file: from offset 0 a unit of 64 KiB
// over one target, from 64 KiB on a unit of 1 MiB over four; instead of a number, targets can be
// named in order ("64K:1M:a+b+c").
#pragma once

#include <span>
#include <vector>

#include "file/hints.h"
#include "layout/master_file.h"
#include "store/striped/target.h"

namespace shima {

inline constexpr std::uint64_t default_unit_bytes = std::uint64_t{1} << 20;

// Whether a file that is created with these hints, on this machine, is to be striped; also where
// regions_for will then say that they are wrong.
[[nodiscard]] bool wants_striping(const Hints& hints);

// The same, where it is known which targets are configured. Pure.
[[nodiscard]] Result<std::vector<StripedRegion>> regions_for(const Hints& hints,
                                                             std::span<const TargetPlace> places);
[[nodiscard]] Result<std::vector<StripedRegion>> regions_for(const Hints& hints);

// Puts what is true of a striped file into the hints that tell of it.
void describe_striping(const MasterFile& master, Hints& hints);

}  // namespace shima
