// The NUMA domain to which a thread is bound.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/process/cpu_mask.h"

namespace shima {

// Reads a list as Linux writes it: "0-3,8,10-11". None if it is not one.
[[nodiscard]] std::optional<CpuMask> parse_cpu_list(std::string_view text);

// The number of the domain that has all of `cpus`; none if there is only one domain, or they are in
// several. `domains`: where Linux describes them.
[[nodiscard]] std::optional<int> numa_domain_of(
    const CpuMask& cpus, const std::filesystem::path& domains = "/sys/devices/system/node");

}  // namespace shima
