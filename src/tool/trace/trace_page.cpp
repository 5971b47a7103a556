#include "tool/trace/trace_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/html_text.h"
#include "tool/top/screen.h"
#include "tool/trace/page_parts.h"
#include "tool/trace/task_pictures.h"

namespace shima::tool {
namespace {

// --- the timeline ---------------------------------------------------------------------------

struct Paint {
  const char* kind = nullptr;
  int strength = 0;  // 1 to 4
  friend bool operator==(const Paint&, const Paint&) = default;
};

Paint paint_of(const TimelineCell& cell) {
  const float most = std::max({cell.write, cell.read, cell.wait, cell.other});
  if (most <= 0) return {};
  const char* const kind = most == cell.write  ? "w"
                           : most == cell.read ? "r"
                           : most == cell.wait ? "p"
                                               : "o";
  const float all = std::min(1.0F, cell.write + cell.read + cell.wait + cell.other);
  return {kind, std::clamp(static_cast<int>(std::ceil(all * 4)), 1, 4)};
}

std::string timeline_row(const TimelineRow& row, double y, double height) {
  std::string text;
  const double step = picture_width / static_cast<double>(row.cells.size());
  for (std::size_t i = 0; i < row.cells.size();) {
    const Paint paint = paint_of(row.cells[i]);
    std::size_t end = i + 1;
    while (end < row.cells.size() && paint_of(row.cells[end]) == paint) ++end;
    if (paint.kind != nullptr)
      text += rect(paint.kind,
                   {label_width + static_cast<double>(i) * step, y,
                    static_cast<double>(end - i) * step, height},
                   0.25 * paint.strength);
    i = end;
  }
  return text;
}

std::string timeline_key(const TraceSummary& summary) {
  if (!summary.has_tasks)
    return R"(<span class="key"><span class="w"></span>write<span class="r"></span>read)"
           R"(<span class="o"></span>open, close, sync, view</span>)";
  return R"(<span class="key"><span class="w"></span>write, send<span class="r"></span>read, fetch)"
         R"(<span class="p"></span>wait for tasks<span class="o"></span>others</span>)";
}

std::string timeline(const TraceSet& set, const TraceSummary& summary) {
  const std::size_t rows = summary.timeline.size();
  const double height =
      std::clamp(1200.0 / static_cast<double>(std::max<std::size_t>(rows, 1)), 2.0, 18.0);
  const std::size_t label_step = static_cast<std::size_t>(std::ceil(12 / height));
  std::string body;
  double y = 4;
  for (std::size_t i = 0; i < rows; ++i, y += height) {
    if (i % label_step == 0)
      body += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", label_width - 6,
                          y + height / 2, escaped(summary.timeline[i].name));
    body += timeline_row(summary.timeline[i], y, height * 0.85);
  }
  body += time_axis(y + 12, static_cast<double>(set.end_ns - set.begin_ns) / 1e9);
  return card("Timeline",
              "A row for each rank. The colour is what takes most of the time; it is the "
              "stronger, the more of the time is in calls. " +
                  timeline_key(summary),
              picture(y + 24, body));
}

// --- heat maps ------------------------------------------------------------------------------

std::string heat_cells(const std::array<std::array<double, HeatMap::columns>, HeatMap::rows>& cells,
                       const char* kind, double height) {
  double most = 0;
  for (const auto& row : cells) most = std::max(most, *std::ranges::max_element(row));
  const double w = picture_width / HeatMap::columns;
  const double h = height / HeatMap::rows;
  std::string text;
  for (std::size_t y = 0; y < HeatMap::rows; ++y)
    for (std::size_t x = 0; x < HeatMap::columns; ++x) {
      if (cells[y][x] <= 0) continue;
      // Offset 0 is at the bottom.
      const double top = 4 + static_cast<double>(HeatMap::rows - 1 - y) * h;
      text += rect(kind, {label_width + static_cast<double>(x) * w, top, w, h},
                   0.15 + 0.85 * std::sqrt(cells[y][x] / most));
    }
  return text;
}

std::string heat_map(const TraceSet& set, const HeatMap& map, bool write) {
  constexpr double height = 190;
  std::string body = fmt::format(R"(<rect class="frame" x="{}" y="4" width="{}" height="{}"/>)",
                                 label_width, picture_width, height);
  body += heat_cells(write ? map.writes : map.reads, write ? "w" : "r", height);
  body += fmt::format(R"(<text class="mark" x="{}" y="10" text-anchor="end">{}</text>)",
                      label_width - 6, bytes_text(static_cast<double>(map.end)));
  body += fmt::format(R"(<text class="mark" x="{}" y="{}" text-anchor="end">0</text>)",
                      label_width - 6, height);
  body += time_axis(height + 16, static_cast<double>(set.end_ns - set.begin_ns) / 1e9);
  return fmt::format("<h3>{}: {} {}</h3>{}", escaped(map.file),
                     bytes_text(write ? map.written : map.read), write ? "written" : "read",
                     picture(height + 28, body));
}

std::string heat_maps(const TraceSet& set, const TraceSummary& summary) {
  constexpr std::size_t most = 4;
  std::string body;
  for (std::size_t i = 0; i < std::min(summary.files.size(), most); ++i) {
    const HeatMap& map = summary.files[i];
    if (map.written > 0) body += heat_map(set, map, true);
    if (map.read > 0) body += heat_map(set, map, false);
  }
  if (summary.files.size() > most)
    body += fmt::format("<p class=\"soft\">{} more files have fewer bytes.</p>",
                        summary.files.size() - most);
  return body.empty()
             ? body
             : card("Bytes by file offset and time",
                    "Upwards: the offset in the file. A call's bytes count as spread evenly "
                    "over its range of offsets and its time; those of short calls that share an "
                    "event, over the range and the time of all of them.",
                    body);
}

// --- sizes ----------------------------------------------------------------------------------

std::string bin_name(std::size_t bin) {
  return bin == 0 ? "0" : bytes_text(static_cast<double>(std::uint64_t{1} << (bin - 1)));
}

struct SizeWords {
  const char* title;
  const char* writes;
  const char* reads;
};

std::string histogram(const SizeHistogram& sizes, const SizeWords& words) {
  std::size_t first = SizeHistogram::bins, last = 0;
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < SizeHistogram::bins; ++i) {
    if (sizes.writes[i] + sizes.reads[i] == 0) continue;
    first = std::min(first, i);
    last = i;
    most = std::max({most, sizes.writes[i], sizes.reads[i]});
  }
  if (most == 0) return {};
  constexpr double height = 150;
  constexpr double widest = 90;
  const double step = std::min(picture_width / static_cast<double>(last - first + 1), widest);
  std::string body;
  for (std::size_t i = first; i <= last; ++i) {
    const double x = label_width + static_cast<double>(i - first) * step;
    const auto bar = [&](const char* kind, std::uint64_t count, double at) {
      if (count == 0) return;
      const double h =
          std::max(2.0, height * static_cast<double>(count) / static_cast<double>(most));
      body += rect(kind, {at, 18 + height - h, step * 0.38, h}, 1);
      body += fmt::format(
          R"(<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
          at + step * 0.19, 18 + height - h - 7, short_bytes(static_cast<double>(count)));
    };
    bar("w", sizes.writes[i], x + step * 0.1);
    bar("r", sizes.reads[i], x + step * 0.52);
    constexpr double widest_label = 50;
    if (step >= widest_label || (i - first) % 2 == 0)
      body += fmt::format(R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x + step / 2,
                          height + 32, bin_name(i));
  }
  return card(
      words.title,
      "How many calls moved how many bytes: from the size below the bars to twice as many. " +
          fmt::format(R"(<span class="key"><span class="w"></span>{}<span class="r">)"
                      "</span>{}</span>",
                      words.writes, words.reads),
      picture(height + 44, body));
}

// --- texts ----------------------------------------------------------------------------------

std::string advice_card(const TraceSummary& summary) {
  if (summary.advice.empty())
    return card("Advice", "No call of this job is known to be better made in another way.", "");
  std::string body;
  for (const Advice& advice : summary.advice) {
    body += fmt::format("<p>{}</p>", escaped(advice.text));
    if (advice.calls.empty()) continue;
    body += "<ul>";
    for (const std::string& one : advice.calls)
      body += fmt::format("<li><code>{}</code></li>", escaped(one));
    body += "</ul>";
  }
  return card("Advice", "What should change in the program, and the calls concerned.", body);
}

std::string call_table(const TraceSummary& summary) {
  constexpr std::size_t most = 40;
  std::string rows =
      "<tr><th>call</th><th>calls</th><th>ranks</th><th>bytes</th><th>a call</th><th>time</th>"
      "<th>of it waiting</th></tr>";
  for (std::size_t i = 0; i < std::min(summary.by_site.size(), most); ++i) {
    const CallSum& sum = summary.by_site[i];
    const auto calls = static_cast<double>(sum.calls);
    rows += fmt::format(
        "<tr><td><code>{}</code>{}<br><span class=\"soft\">{}</span></td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        escaped(call_name(sum.call)),
        sum.site.empty() ? "" : " at <code>" + escaped(sum.site) + "</code>", escaped(sum.file),
        sum.calls, sum.ranks.size(), bytes_text(sum.bytes),
        bytes_text(static_cast<double>(sum.bytes) / calls),
        seconds_text(static_cast<double>(sum.duration_ns) / 1e9),
        seconds_text(static_cast<double>(sum.wait_ns) / 1e9));
  }
  return card("Calls",
              "By their place in the program; those that take the most time, over all "
              "ranks, first.",
              "<table>" + rows + "</table>");
}

std::string losses(const TraceSet& set) {
  std::string text;
  if (set.dropped() > 0)
    text += fmt::format(
        "<p class=\"warn\">{} calls are not in the trace, because the space for events was full "
        "(SHIMA_TRACE_LIMIT).</p>",
        set.dropped());
  if (const auto missing = set.missing(); !missing.empty())
    text += fmt::format("<p class=\"warn\">{} of the job: no trace.</p>",
                        missing.size() == 1 ? "One rank" : fmt::format("{} ranks", missing.size()));
  return text;
}

std::string lead(const TraceSet& set, const TraceSummary& summary) {
  const double seconds = static_cast<double>(set.end_ns - set.begin_ns) / 1e9;
  const std::string program = set.processes.empty() ? "" : set.processes.front().program;
  std::string moved;
  if (summary.has_files || !summary.has_tasks)
    moved +=
        fmt::format(", {} written, {} read", bytes_text(summary.written), bytes_text(summary.read));
  if (summary.has_tasks)
    moved += fmt::format(", {} sent to other tasks, {} fetched from them", bytes_text(summary.sent),
                         bytes_text(summary.fetched));
  return fmt::format(
      "{}: {} processes, {} from the first call to the end of the last; {} calls{}{}; {} in calls, "
      "over all processes.",
      escaped(program), set.process_count(), seconds_text(seconds), summary.calls,
      summary.failed > 0 ? fmt::format(" ({} failed)", summary.failed) : "", moved,
      seconds_text(static_cast<double>(summary.io_ns) / 1e9));
}

}  // namespace

std::string trace_page(const TraceSet& set, const TraceSummary& summary) {
  return fmt::format(R"(<!doctype html><html lang="en"><head><meta charset="utf-8">)"
                     R"(<meta name="viewport" content="width=device-width, initial-scale=1">)"
                     "<title>{} of {}</title><style>{}</style></head><body><h1>{} of a job</h1>"
                     "<p>{}</p>{}{}{}{}{}{}{}{}<footer>shima {}</footer></body></html>\n",
                     summary.has_tasks ? "Calls" : "I/O",
                     escaped(set.processes.empty() ? "a job" : set.processes.front().program),
                     page_style, summary.has_tasks ? "Calls" : "File access", lead(set, summary),
                     losses(set), advice_card(summary), timeline(set, summary),
                     task_pictures(summary), heat_maps(set, summary),
                     histogram(summary.sizes, {"Sizes", "write", "read"}),
                     histogram(summary.transfers, {"Sizes between tasks", "send", "fetch"}),
                     call_table(summary), SHIMA_VERSION);
}

}  // namespace shima::tool
