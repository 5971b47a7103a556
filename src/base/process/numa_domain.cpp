// Linux names the domains of a machine in the file `online`, and the CPUs of each in
// `node<k>/cpulist` (Documentation/ABI/stable/sysfs-devices-node). No more of the machine is
// needed, and every rank reads it in its first open.
#include "base/process/numa_domain.h"

#include <charconv>
#include <fstream>
#include <memory>
#include <string>

namespace shima {
namespace {

struct Range {
  int first = 0;
  int last = 0;
};

// Takes the first range, and the comma behind it, from `text`.
std::optional<Range> take_range(std::string_view& text) {
  const char* const begin = std::to_address(text.begin());
  const char* const end = std::to_address(text.end());
  Range range;
  auto read = std::from_chars(begin, end, range.first);
  range.last = range.first;
  if (read.ec == std::errc{} && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, range.last);
  if (read.ec != std::errc{} || range.first < 0 || range.last < range.first) return std::nullopt;
  if (range.last >= CpuMask::most_cpus) return std::nullopt;
  const bool has_comma = read.ptr != end;
  if (has_comma && *read.ptr != ',') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - begin) + (has_comma ? 1 : 0));
  return range;
}

std::optional<CpuMask> list_in(const std::filesystem::path& path) {
  std::string line;
  if (!std::getline(std::ifstream(path), line)) return std::nullopt;
  return parse_cpu_list(line);
}

}  // namespace

std::optional<CpuMask> parse_cpu_list(std::string_view text) {
  CpuMask list;
  while (!text.empty()) {
    const auto range = take_range(text);
    if (!range) return std::nullopt;
    for (int cpu = range->first; cpu <= range->last; ++cpu) list.insert(cpu);
  }
  return list;
}

std::optional<int> numa_domain_of(const CpuMask& cpus, const std::filesystem::path& domains) {
  const auto online = list_in(domains / "online");
  if (!online || online->count() < 2 || cpus.count() == 0) return std::nullopt;
  for (int domain = 0; domain < CpuMask::most_cpus; ++domain) {
    if (!online->has(domain)) continue;
    const auto members = list_in(domains / ("node" + std::to_string(domain)) / "cpulist");
    if (members && members->has_all(cpus)) return domain;
  }
  return std::nullopt;
}

}  // namespace shima
