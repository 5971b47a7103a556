#include "dse/plan/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shima::dse {
namespace {

// The names of the last three dimensions, counted from the last.
struct Sides {
  std::string_view before;
  std::string_view after;
};
constexpr std::array<Sides, 3> sides{{{"west", "east"}, {"north", "south"}, {"down", "up"}}};
constexpr Sides line_sides{"left", "right"};

}  // namespace

std::vector<int> Topology::coordinates(int task) const {
  std::vector<int> found(extents_.size());
  for (std::size_t i = extents_.size(); i-- > 0; task /= extents_[i]) found[i] = task % extents_[i];
  return found;
}

std::optional<int> Topology::along(int task, std::size_t dimension, int step) const {
  int stride = 1;
  for (std::size_t i = dimension + 1; i < extents_.size(); ++i) stride *= extents_[i];
  const int extent = extents_[dimension];
  const int at = task / stride % extent;
  if (!is_closed() && (at + step < 0 || at + step >= extent)) return {};
  const int to = (at + step + extent) % extent;
  return task + (to - at) * stride;
}

std::string Topology::name_of(std::size_t dimension, int step) const {
  if (kind_ == Kind::hypercube) return fmt::format("dim{}", extents_.size() - 1 - dimension);
  const std::size_t from_last = extents_.size() - 1 - dimension;
  if (extents_.size() > sides.size())
    return fmt::format("dim{}{}", dimension, step < 0 ? '-' : '+');
  const Sides& names = extents_.size() == 1 ? line_sides : sides[from_last];
  return std::string(step < 0 ? names.before : names.after);
}

// The dimension and the step that a name means in a grid.
std::optional<std::pair<std::size_t, int>> Topology::direction(std::string_view name) const {
  const std::size_t count = extents_.size();
  if (kind_ != Kind::hypercube) {
    if (name == line_sides.before) return {{count - 1, -1}};
    if (name == line_sides.after) return {{count - 1, 1}};
    for (std::size_t from_last = 0; from_last < std::min(count, sides.size()); ++from_last) {
      if (name == sides[from_last].before) return {{count - 1 - from_last, -1}};
      if (name == sides[from_last].after) return {{count - 1 - from_last, 1}};
    }
  }
  if (!name.starts_with("dim")) return {};
  std::size_t dimension = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 3, end, dimension);
  if (parsed.ec != std::errc() || dimension >= count) return {};
  const std::string_view rest(parsed.ptr, static_cast<std::size_t>(end - parsed.ptr));
  if (kind_ == Kind::hypercube)
    return rest.empty() ? std::optional(std::pair(count - 1 - dimension, 1)) : std::nullopt;
  if (rest == "-") return {{dimension, -1}};
  if (rest == "+") return {{dimension, 1}};
  return {};
}

std::optional<int> Topology::neighbor(int task, std::string_view name) const {
  if (task < 0 || task >= tasks_) return {};
  if (kind_ == Kind::graph) {
    const auto found = edges_.find(task);
    if (found == edges_.end()) return {};
    const auto edge = std::ranges::find(found->second, name, &Neighbor::name);
    return edge == found->second.end() ? std::nullopt : std::optional(edge->task);
  }
  const auto where = direction(name);
  return where ? along(task, where->first, where->second) : std::nullopt;
}

std::vector<Neighbor> Topology::neighbors(int task) const {
  if (task < 0 || task >= tasks_) return {};
  if (kind_ == Kind::graph) {
    const auto found = edges_.find(task);
    return found == edges_.end() ? std::vector<Neighbor>() : found->second;
  }
  std::vector<Neighbor> all;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    // Bit 0 of a hypercube is its last dimension, and comes first.
    const bool is_cube = kind_ == Kind::hypercube;
    const std::size_t dimension = is_cube ? extents_.size() - 1 - i : i;
    for (const int step : {-1, 1}) {
      if (is_cube && step < 0) continue;
      if (const auto other = along(task, dimension, step))
        all.push_back({name_of(dimension, step), *other});
    }
  }
  return all;
}

}  // namespace shima::dse
