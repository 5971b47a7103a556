// A chart of curves over the number of ranks, as inline SVG; both axes are logarithmic. Pure.
#pragma once

#include <string>
#include <vector>

namespace shima::simulate {

struct Curve {
  std::string name;
  std::vector<double> values;  // by number of ranks; what is not above 0 is not drawn
  bool is_limit = false;       // dashed
};

struct LineChart {
  std::string title;
  std::string lead;
  std::string unit;
  std::vector<int> ranks;
  std::vector<Curve> curves;
};

[[nodiscard]] std::string draw(const LineChart& chart);

// 1500 as "1.5 k".
[[nodiscard]] std::string short_number(double value);

}  // namespace shima::simulate
