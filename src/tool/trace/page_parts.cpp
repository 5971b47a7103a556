#include "tool/trace/page_parts.h"

#include <fmt/format.h>

#include "observe/html_text.h"
#include "tool/top/screen.h"

namespace shima::tool {

const std::string_view page_style = R"(
:root { color-scheme: light dark; --page: #fbfaf7; --ink: #22262b; --soft: #646b76; --line: #dcd8cf;
  --card: #ffffff; --write: #c2571a; --read: #1f5fa8; --other: #7a3fa0; --wait: #6d7d2f; --warn: #a3312a; }
@media (prefers-color-scheme: dark) {
:root { --page: #15181c; --ink: #e6e4df; --soft: #9aa1ab; --line: #363b42; --card: #1d2126;
  --write: #ee8a4c; --read: #5c9fe6; --other: #c397e0; --wait: #aebd6a; --warn: #ef8b83; } }
body { background: var(--page); color: var(--ink); max-width: 1080px; margin: 2rem auto;
  padding: 0 1rem; font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 0 0 .3rem; }
h3 { font-size: 1rem; margin: .8rem 0 .2rem; overflow-wrap: anywhere; }
p { margin: .2rem 0 .7rem; } .soft, footer { color: var(--soft); } .warn { color: var(--warn); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.3rem; margin: 1.3rem 0; overflow-x: auto; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font-size: 11px; dominant-baseline: central;
  font-variant-numeric: tabular-nums; }
svg rect { shape-rendering: crispEdges; }
svg .mark { fill: var(--soft); } svg .frame { fill: none; stroke: var(--line); }
.w { fill: var(--write); } .r { fill: var(--read); } .o { fill: var(--other); } .p { fill: var(--wait); }
.key { white-space: nowrap; } .key span { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin: 0 .3em 0 1em; } .key .w { background: var(--write); } .key .r { background: var(--read); }
.key .o { background: var(--other); } .key .p { background: var(--wait); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere; }
ul { margin: .2rem 0 .6rem; padding-left: 1.3rem; } code { font-size: .92em; overflow-wrap: anywhere; }
)";

std::string bytes_text(double bytes) {
  const std::string number = short_bytes(bytes);
  const char last = number.back();
  if (last >= '0' && last <= '9') return number + " B";
  return number.substr(0, number.size() - 1) + " " + last + "iB";
}
std::string bytes_text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string card(const std::string& title, const std::string& lead, const std::string& body) {
  return fmt::format("<section class=\"card\"><h2>{}</h2><p class=\"soft\">{}</p>{}</section>\n",
                     title, lead, body);
}

std::string rect(const char* kind, const Box& box, double opacity, const std::string& title) {
  std::string text = fmt::format(
      R"(<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" opacity="{:.2f}")",
      kind, box.x, box.y, box.w, box.h, opacity);
  return text + (title.empty() ? "/>" : "><title>" + escaped(title) + "</title></rect>");
}

std::string time_axis(double y, double seconds) {
  std::string text;
  constexpr int marks = 6;
  for (int i = 0; i <= marks; ++i) {
    const double part = static_cast<double>(i) / marks;
    const char* anchor = i == 0 ? "start" : i == marks ? "end" : "middle";
    text +=
        fmt::format(R"(<text class="mark" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)",
                    label_width + part * picture_width, y, anchor, seconds_text(part * seconds));
  }
  return text;
}

std::string picture(double height, const std::string& body) {
  return fmt::format(R"(<svg viewBox="0 0 {} {:.0f}" role="img">{}</svg>)",
                     label_width + picture_width + 4, height, body);
}

}  // namespace shima::tool
