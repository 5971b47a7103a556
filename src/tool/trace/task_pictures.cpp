#include "tool/trace/task_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tool/trace/page_parts.h"

namespace shima::tool {
namespace {

// A square of cells: rows are ranks, columns are other tasks. Of many tasks, several share a cell.
class Grid {
 public:
  Grid(const TraceSummary& summary, std::uint64_t TaskTraffic::* value) {
    int last = 0;
    for (const auto& [pair, traffic] : summary.traffic)
      last = std::max({last, pair.first, pair.second});
    per_cell_ = last / most_cells + 1;
    side_ = static_cast<std::size_t>(last / per_cell_) + 1;
    cells_.resize(side_ * side_);
    for (const auto& [pair, traffic] : summary.traffic)
      if (pair.first >= 0 && pair.second >= 0)
        at(cell_of(pair.first), cell_of(pair.second)) += traffic.*value;
    most_ = *std::ranges::max_element(cells_);
  }
  [[nodiscard]] std::size_t side() const { return side_; }
  [[nodiscard]] std::uint64_t most() const { return most_; }
  [[nodiscard]] std::uint64_t value(std::size_t row, std::size_t column) const {
    return cells_[row * side_ + column];
  }
  // "3", or "4-7".
  [[nodiscard]] std::string name(std::size_t cell) const {
    const int first = static_cast<int>(cell) * per_cell_;
    return per_cell_ == 1 ? fmt::format("{}", first)
                          : fmt::format("{}-{}", first, first + per_cell_ - 1);
  }

 private:
  static constexpr int most_cells = 64;
  [[nodiscard]] std::size_t cell_of(int task) const {
    return static_cast<std::size_t>(task / per_cell_);
  }
  [[nodiscard]] std::uint64_t& at(std::size_t row, std::size_t column) {
    return cells_[row * side_ + column];
  }

  int per_cell_ = 1;
  std::size_t side_ = 1;
  std::vector<std::uint64_t> cells_;
  std::uint64_t most_ = 0;
};

struct Kind {
  std::uint64_t TaskTraffic::* value;
  const char* paint;
  const char* heading;
  const char* verb;  // "0 {verb} 1"
  bool is_time;
};
constexpr std::array<Kind, 3> kinds{{
    {&TaskTraffic::sent, "w", "bytes sent", "sent to", false},
    {&TaskTraffic::fetched, "r", "bytes fetched", "fetched from", false},
    {&TaskTraffic::waited_ns, "p", "time waited", "waited for", true},
}};

constexpr double widest = 270;
constexpr double top = 22;

std::string amount(const Kind& kind, std::uint64_t value) {
  return kind.is_time ? seconds_text(static_cast<double>(value) / 1e9) : bytes_text(value);
}

std::string axis(const Grid& grid, double left, double step) {
  std::string text;
  constexpr double room = 24;
  const auto every = static_cast<std::size_t>(std::ceil(room / step));
  for (std::size_t i = 0; i < grid.side(); i += every) {
    const double middle = (static_cast<double>(i) + 0.5) * step;
    const std::string name = grid.name(i);
    text += fmt::format(R"(<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)",
                        left - 5, top + middle, name);
    text +=
        fmt::format(R"(<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                    left + middle, top + static_cast<double>(grid.side()) * step + 10, name);
  }
  return text;
}

std::string panel(const Grid& grid, const Kind& kind, double left, double step) {
  const double side = static_cast<double>(grid.side()) * step;
  std::string text = fmt::format(R"(<text x="{:.1f}" y="10">{}</text>)", left, kind.heading);
  text +=
      fmt::format(R"(<rect class="frame" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)",
                  left, top, side, side);
  for (std::size_t row = 0; row < grid.side(); ++row)
    for (std::size_t column = 0; column < grid.side(); ++column) {
      const std::uint64_t value = grid.value(row, column);
      if (value == 0) continue;
      const double part = static_cast<double>(value) / static_cast<double>(grid.most());
      text += rect(kind.paint,
                   {left + static_cast<double>(column) * step,
                    top + static_cast<double>(row) * step, step, step},
                   0.15 + 0.85 * std::sqrt(part),
                   fmt::format("{} {} {}: {}", grid.name(row), kind.verb, grid.name(column),
                               amount(kind, value)));
    }
  return text + axis(grid, left, step);
}

}  // namespace

std::string task_pictures(const TraceSummary& summary) {
  if (summary.traffic.empty()) return {};
  std::string body;
  double left = label_width;
  double height = 0;
  for (const Kind& kind : kinds) {
    const Grid grid(summary, kind.value);
    if (grid.most() == 0) continue;
    const double step = std::min(widest / static_cast<double>(grid.side()), 40.0);
    body += panel(grid, kind, left, step);
    left += widest + label_width;
    height = top + static_cast<double>(grid.side()) * step + 22;
  }
  if (body.empty()) return {};
  return card("Between tasks",
              "A row for each rank, a column for each task whose memory it has accessed, or for "
              "which it has waited: the one that has made a counter grow, or has come last.",
              picture(height, body));
}

}  // namespace shima::tool
