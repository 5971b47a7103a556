#include "simulate/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "observe/html_text.h"

namespace shima::simulate {
namespace {

constexpr double width = 880;
constexpr double height = 300;
constexpr double left = 62;
constexpr double right = 190;  // names of curves
constexpr double top = 14;
constexpr double bottom = 34;
constexpr double line_height = 16;

// Maps logarithms of values to a side of the drawing.
struct Axis {
  double low = 0;
  double high = 1;
  double begin = 0;
  double end = 1;

  [[nodiscard]] double at(double value) const {
    return begin + (std::log10(value) - low) / (high - low) * (end - begin);
  }
};

Axis ranks_axis(const LineChart& chart) {
  const double low = std::log10(chart.ranks.front());
  const double high = std::log10(chart.ranks.back());
  return {low, std::max(high, low + 0.3), left, width - right};
}

// Whole powers of ten.
Axis values_axis(const LineChart& chart) {
  double least = 0;
  double most = 0;
  for (const Curve& curve : chart.curves)
    for (const double value : curve.values) {
      if (!(value > 0)) continue;
      least = least == 0 ? value : std::min(least, value);
      most = std::max(most, value);
    }
  if (most == 0) return {0, 1, height - bottom, top};
  const double low = std::floor(std::log10(least));
  return {low, std::max(std::ceil(std::log10(most)), low + 1), height - bottom, top};
}

std::string label(double x, double y, std::string_view anchor, std::string_view kind,
                  std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>)", x, y,
                     anchor, kind, escaped(text));
}

std::string grid(const LineChart& chart, const Axis& x, const Axis& y) {
  std::string drawn;
  for (int power = static_cast<int>(y.low); power <= static_cast<int>(y.high); ++power) {
    const double at = y.at(std::pow(10, power));
    drawn += fmt::format(R"(<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>)", left,
                         width - right, at, at);
    drawn += label(left - 8, at, "end", "mark", short_number(std::pow(10, power)));
  }
  for (const int ranks : chart.ranks)
    drawn += label(x.at(ranks), height - bottom + 16, "middle", "mark", short_number(ranks));
  return drawn + label((left + width - right) / 2, height - 4, "middle", "mark", "ranks");
}

std::string line_of(const LineChart& chart, const Curve& curve, std::size_t number, const Axis& x,
                    const Axis& y) {
  std::string points;
  std::string dots;
  const std::string kind = curve.is_limit ? "limit" : fmt::format("c{}", number);
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    if (!(curve.values[i] > 0)) continue;
    const double at_x = x.at(chart.ranks[i]);
    const double at_y = y.at(curve.values[i]);
    points += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
    if (!curve.is_limit)
      dots += fmt::format(
          R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.2" class="{}"><title>{}: {} {} at {} ranks</title></circle>)",
          at_x, at_y, kind, escaped(curve.name), short_number(curve.values[i]), escaped(chart.unit),
          chart.ranks[i]);
  }
  return fmt::format(R"(<polyline points="{}" class="{}"/>)", points, kind) + dots;
}

// The names of the curves, each near the end of its own, from top to bottom without overlaps.
std::string names(const LineChart& chart, const Axis& y) {
  struct Name {
    double at;
    std::size_t curve;
  };
  std::vector<Name> placed;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const auto& values = chart.curves[i].values;
    if (!values.empty() && values.back() > 0) placed.push_back({y.at(values.back()), i});
  }
  std::ranges::sort(placed, {}, &Name::at);
  std::string drawn;
  double lowest = top;
  for (const Name& name : placed) {
    const Curve& curve = chart.curves[name.curve];
    const double at = std::max(name.at, lowest);
    lowest = at + line_height;
    drawn += label(width - right + 10, at, "start",
                   curve.is_limit ? "mark" : fmt::format("name c{}", name.curve),
                   fmt::format("{} {}", short_number(curve.values.back()), curve.name));
  }
  return drawn;
}

}  // namespace

std::string short_number(double value) {
  constexpr std::array units{"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.3g}{}", value, units[unit]);
}

std::string draw(const LineChart& chart) {
  const Axis x = ranks_axis(chart);
  const Axis y = values_axis(chart);
  std::string lines;
  for (std::size_t i = 0; i < chart.curves.size(); ++i)
    lines += line_of(chart, chart.curves[i], i, x, y);
  return fmt::format(
      R"(<section class="card"><h2>{}</h2><p class="soft">{} Unit: {}.</p>)"
      R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}{}{}</svg></section>)",
      escaped(chart.title), escaped(chart.lead), escaped(chart.unit), width, height,
      escaped(chart.title), grid(chart, x, y), lines, names(chart, y));
}

}  // namespace shima::simulate
