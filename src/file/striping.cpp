#include "file/striping.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shima {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// The usable targets, in order.
Result<std::vector<std::string>> order_of(const Hints& hints, std::span<const TargetPlace> places) {
  std::vector<std::string> order;
  if (!hints.shima_targets.empty()) order = split(hints.shima_targets, ',');
  if (hints.shima_targets.empty())
    for (const TargetPlace& place : places) order.push_back(place.name);
  for (const std::string& name : order)
    if (!is_target_name(name))
      return fail(Code::bad_argument,
                  fmt::format("hint shima_targets=\"{}\": \"{}\" is not the name of a target",
                              hints.shima_targets, name));
  if (order.empty())
    return fail(Code::bad_argument,
                "striping needs targets: set SHIMA_TARGETS=name=/directory:..., or the hint "
                "shima_targets=beside for subfiles beside the file");
  const auto first = std::max(hints.start_iodevice, 0) % std::ssize(order);
  std::ranges::rotate(order, order.begin() + first);
  return order;
}

std::vector<std::string> take(const std::vector<std::string>& order, int count) {
  std::vector<std::string> taken;
  for (int i = 0; i < count; ++i)
    taken.push_back(order[static_cast<std::size_t>(i) % order.size()]);
  return taken;
}

std::unexpected<Error> bad_regions(const Hints& hints, std::string_view part) {
  return fail(Code::bad_argument,
              fmt::format("hint shima_regions=\"{}\": \"{}\" must be BEGIN:UNIT:TARGETS, as in "
                          "64K:1M:4 or 64K:1M:disk0+disk1",
                          hints.shima_regions, part));
}

Result<StripedRegion> region_of(const Hints& hints, std::string_view part,
                                const Result<std::vector<std::string>>& order) {
  const auto fields = split(part, ':');
  if (fields.size() != 3) return bad_regions(hints, part);
  const auto begin = parse_bytes(fields[0]);
  const auto unit = parse_bytes(fields[1]);
  if (!begin || !unit) return bad_regions(hints, part);
  int count = 0;
  const std::string& last = fields[2];
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), count);
  const bool is_number = error == std::errc{} && end == last.data() + last.size();
  if (is_number && (count < 1 || count > most_subfiles)) return bad_regions(hints, part);
  if (is_number && !order) return std::unexpected(order.error());
  StripedRegion region{
      {*begin}, as_unsigned(*unit), is_number ? take(*order, count) : split(last, '+')};
  if (!std::ranges::all_of(region.targets, is_target_name)) return bad_regions(hints, part);
  return region;
}

}  // namespace

bool wants_striping(const Hints& hints) {
  if (!hints.shima_targets.empty() || !hints.shima_regions.empty()) return true;
  if (hints.striping_factor < 1) return false;
  const auto places = configured_targets();
  return !places || !places->empty();
}

Result<std::vector<StripedRegion>> regions_for(const Hints& hints,
                                               std::span<const TargetPlace> places) {
  const auto order = order_of(hints, places);
  const bool needs_order = hints.shima_regions.empty() || !hints.shima_targets.empty();
  if (needs_order && !order) return std::unexpected(order.error());
  std::vector<StripedRegion> regions;
  if (!hints.shima_regions.empty()) {
    for (const std::string& part : split(hints.shima_regions, ',')) {
      SHIMA_TRY_ASSIGN(StripedRegion region, region_of(hints, part, order));
      regions.push_back(std::move(region));
    }
    return regions;
  }
  const int count =
      hints.striping_factor > 0 ? hints.striping_factor : static_cast<int>(order->size());
  if (count > most_subfiles)
    return fail(Code::bad_argument,
                fmt::format("hint striping_factor={}: a file has at most {} subfiles", count,
                            most_subfiles));
  regions.push_back({{0},
                     hints.striping_unit == 0 ? default_unit_bytes : hints.striping_unit,
                     take(*order, count)});
  return regions;
}

Result<std::vector<StripedRegion>> regions_for(const Hints& hints) {
  SHIMA_TRY_ASSIGN(const auto places, configured_targets());
  return regions_for(hints, places);
}

void describe_striping(const MasterFile& master, Hints& hints) {
  const StripedRegion& last = master.regions.back();
  hints.striping_unit = last.unit_bytes;
  hints.striping_factor = static_cast<int>(last.targets.size());
  hints.start_iodevice = 0;
  hints.shima_targets = fmt::format("{}", fmt::join(last.targets, ","));
  hints.shima_regions.clear();
  if (master.regions.size() == 1) return;
  for (const StripedRegion& region : master.regions)
    hints.shima_regions +=
        fmt::format("{}{}:{}:{}", hints.shima_regions.empty() ? "" : ",", region.begin.value,
                    region.unit_bytes, fmt::join(region.targets, "+"));
}

}  // namespace shima
