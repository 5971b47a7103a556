// Derives the regions of a new striped file from hints.
//
// Striping is requested by naming targets (shima_targets), or by striping_factor if targets are
// configured. Without either, the other striping hints are ignored, because programs set them for
// other file systems. The order of targets is that of shima_targets, or else of the configuration,
// starting with number start_iodevice; if there are fewer targets than subfiles, they are used in
// turn. shima_regions "0:64K:1,64K:1M:4" divides the file: from offset 0 a unit of 64 KiB over one
// target, from 64 KiB on a unit of 1 MiB over four. Instead of a number, targets can be named in
// order ("64K:1M:a+b+c").
#pragma once

#include <span>
#include <vector>

#include "file/hints/hints.h"
#include "layout/master_file.h"
#include "store/target/target.h"

namespace shima {

inline constexpr std::uint64_t default_unit_bytes = std::uint64_t{1} << 20;

// Whether a file created with these hints on this machine is to be striped; true also if
// regions_for will report an error.
[[nodiscard]] bool wants_striping(const Hints& hints);

// The same for a known list of configured targets. Pure.
[[nodiscard]] Result<std::vector<StripedRegion>> regions_for(const Hints& hints,
                                                             std::span<const TargetPlace> places);
[[nodiscard]] Result<std::vector<StripedRegion>> regions_for(const Hints& hints);

// Sets the hints that describe the layout of a striped file.
void describe_striping(const MasterFile& master, Hints& hints);

}  // namespace shima
