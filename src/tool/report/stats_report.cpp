// Formats the JSON objects that the library writes, one for each closed file. It defines the format
// of numbers, but not their names: {"file", "comm_size", ..., "counters": {}, "times_us": {},
// "hints": {}, "subfiles": [{}], "advice": []}.
//
// The suffix of a name gives the unit: bytes are also shown in a binary unit; everything in
// times_us is shown in milliseconds.
#include "tool/report/stats_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace shima::tool {
namespace {

using nlohmann::ordered_json;

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string with_unit(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

// "name  value  in other units", the values right-aligned.
using Row = std::array<std::string, 3>;

Row row_of(const std::string& name, const ordered_json& value, bool is_time) {
  if (is_time && value.is_number())
    return {name, fmt::format("{:.3f}", value.get<double>() / 1000), "ms"};
  Row row{name, text_of(value), ""};
  if (name.find("bytes") != std::string::npos && value.is_number() && value.get<double>() >= 1024)
    row[2] = with_unit(value.get<double>());
  return row;
}

std::string table(const std::vector<Row>& rows) {
  std::size_t name_width = 0, value_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row[0].size());
    value_width = std::max(value_width, row[1].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("      {:<{}}  {:>{}}", row[0], name_width, row[1], value_width);
    text += row[2].empty() ? "\n" : fmt::format("  {}\n", row[2]);
  }
  return text;
}

std::string section(const std::string& title, const ordered_json& object) {
  std::vector<Row> rows;
  for (const auto& [name, value] : object.items())
    rows.push_back(row_of(name, value, title == "times_us"));
  const std::string shown = title == "times_us" ? "times" : title;
  return rows.empty() ? std::string() : fmt::format("    {}\n{}", shown, table(rows));
}

std::string cell_of(const std::string& name, const ordered_json& value) {
  if (name.find("bytes") != std::string::npos && value.is_number())
    return with_unit(value.get<double>());
  return text_of(value);
}

// One row per object, one column per key of the first object; names before numbers.
std::string grid(const std::string& title, const ordered_json& objects) {
  std::string text = fmt::format("    {}\n", title);
  std::vector<std::string> lines(objects.size() + 1, "     ");
  std::vector<std::pair<std::string, ordered_json>> columns;
  for (const auto& [name, first] : objects.front().items()) columns.emplace_back(name, first);
  std::ranges::stable_partition(columns, [](const auto& each) { return each.second.is_string(); });
  for (const auto& [name, first] : columns) {
    std::vector<std::string> column{name};
    for (const auto& object : objects) column.push_back(cell_of(name, object.value(name, first)));
    const std::size_t width = std::ranges::max(column, {}, &std::string::size).size();
    for (std::size_t i = 0; i < lines.size(); ++i)
      lines[i] += first.is_string() ? fmt::format(" {:<{}} ", column[i], width)
                                    : fmt::format(" {:>{}} ", column[i], width);
  }
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string lines_of(const std::string& title, const ordered_json& array) {
  if (!array.empty() && array.front().is_object()) return grid(title, array);
  std::string text;
  for (const auto& line : array) text += fmt::format("    {}: {}\n", title, text_of(line));
  return text;
}

std::string head_line(const ordered_json& report) {
  std::string line = "  " + text_of(report.value("file", ordered_json("(no name)")));
  std::string details;
  for (const auto& [name, value] : report.items()) {
    if (name == "file" || value.is_structured()) continue;
    details += fmt::format("{}{} {}", details.empty() ? "" : ", ", name, text_of(value));
  }
  return line + (details.empty() ? "\n" : fmt::format("  ({})\n", details));
}

}  // namespace

std::string format_stats_line(const std::string& json_line) {
  const auto report = ordered_json::parse(json_line, nullptr, false);
  if (!report.is_object()) return {};
  std::string text = head_line(report);
  for (const auto& [name, value] : report.items())
    if (value.is_object()) text += section(name, value);
  for (const auto& [name, value] : report.items())
    if (value.is_array()) text += lines_of(name, value);
  return text;
}

void print_stats_report(const std::string& stats_file) {
  std::ifstream lines(stats_file);
  std::string report;
  for (std::string line; std::getline(lines, line);) report += format_stats_line(line);
  if (report.empty()) report = "  no file was opened and closed through MPI-IO\n";
  std::fprintf(stderr, "shima: statistics of the files closed by this job\n%s", report.c_str());
}

}  // namespace shima::tool
