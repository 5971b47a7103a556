// The page of a report: curves over the number of ranks with the limits beside them, and tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "observe/html_text.h"
#include "simulate/limits.h"
#include "simulate/line_chart.h"
#include "simulate/report.h"

namespace shima::simulate {
namespace {

constexpr double flat = 1.5;

constexpr std::string_view style = R"(
:root { --page: #fbfaf7; --ink: #22262b; --soft: #6b7280; --line: #dcd8cf; --card: #ffffff;
  --c0: #1f5fa8; --c1: #c2571a; --c2: #23733c; --c3: #7a3fa0; --good: #23733c; --bad: #a3312a; }
@media (prefers-color-scheme: dark) {
:root { --page: #15181c; --ink: #e6e4df; --soft: #9aa1ab; --line: #363b42; --card: #1d2126;
  --c0: #5c9fe6; --c1: #ee8a4c; --c2: #74c98d; --c3: #c397e0; --good: #74c98d; --bad: #ef8b83; } }
body { background: var(--page); color: var(--ink); max-width: 940px; margin: 2.5rem auto;
  padding: 0 1rem; font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 0 0 .1rem; }
p { margin: .2rem 0 .8rem; } .soft, footer { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.3rem; margin: 1.3rem 0; overflow-x: auto; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--ink); font-size: 12.5px; dominant-baseline: central;
  font-variant-numeric: tabular-nums; }
svg .mark { fill: var(--soft); } svg line { stroke: var(--line); }
svg polyline { fill: none; stroke-width: 2; }
svg polyline.limit { stroke: var(--soft); stroke-width: 1.3; stroke-dasharray: 5 4; }
svg polyline.c0 { stroke: var(--c0); } svg .c0:not(polyline) { fill: var(--c0); }
svg polyline.c1 { stroke: var(--c1); } svg .c1:not(polyline) { fill: var(--c1); }
svg polyline.c2 { stroke: var(--c2); } svg .c2:not(polyline) { fill: var(--c2); }
svg polyline.c3 { stroke: var(--c3); } svg .c3:not(polyline) { fill: var(--c3); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .25rem .6rem; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
)";

// Values of all scales.
template <class Of>
std::vector<double> over_scales(const Report& report, Of of) {
  std::vector<double> values;
  for (const Scale& scale : report.scales) values.push_back(of(scale, figures_of(scale)));
  return values;
}

Curve curve(const Report& report, std::string name, double Figures::* figure) {
  return {.name = std::move(name),
          .values = over_scales(report, [&](const Scale&, const Figures& f) { return f.*figure; })};
}

// What a flat figure may reach: 1.5 of its smallest value.
Curve flat_limit(const Report& report, double Figures::* figure, double least = 0) {
  auto values = curve(report, "", figure).values;
  const double smallest = std::max(*std::ranges::min_element(values), least);
  std::ranges::fill(values, smallest * flat);
  return {.name = "limit", .values = std::move(values), .is_limit = true};
}

double log2_nodes(int nodes) { return nodes == 1 ? 0 : std::ceil(std::log2(nodes)) + 1; }

std::vector<LineChart> charts_of(const Report& report) {
  std::vector<int> ranks;
  for (const Scale& scale : report.scales) ranks.push_back(scale.ranks);
  const auto limit = [&](std::string name, auto of) {
    return Curve{std::move(name), over_scales(report, of), true};
  };
  const auto part = [&](std::string name, double Estimate::* which) {
    return Curve{std::move(name), over_scales(report, [=](const Scale& scale, const Figures&) {
                   return scale.estimate.*which;
                 })};
  };
  return {
      {"Processor time of planning",
       "One call, from the program's arguments to the first byte moved.",
       "ns",
       ranks,
       {curve(report, "rank, no leader", &Figures::member_ns),
        curve(report, "leader: joining digests", &Figures::leader_ns),
        curve(report, "master: its requests", &Figures::master_ns),
        flat_limit(report, &Figures::member_ns)}},
      {"Memory",
       "Of one rank.",
       "bytes",
       ranks,
       {curve(report, "allocated to plan a call", &Figures::member_bytes),
        curve(report, "kept: topology", &Figures::topology_bytes),
        curve(report, "master: its agents' walks", &Figures::master_bytes),
        flat_limit(report, &Figures::member_bytes)}},
      {"Messages",
       "The most of any sampled leader, master or agent in one call.",
       "messages",
       ranks,
       {curve(report, "leader", &Figures::leader_messages),
        curve(report, "master: requests", &Figures::requests),
        curve(report, "agent: windows", &Figures::agent_messages),
        curve(report, "agent: in a window", &Figures::in_a_window),
        limit("2 log2(nodes) + 2",
              [](const Scale& scale, const Figures&) { return 2 * log2_nodes(scale.nodes); }),
        limit("agents with its bytes",
              [](const Scale&, const Figures& f) { return f.requests_needed; })}},
      {"Estimated duration",
       "By the model of transfers, with the machine's values below.",
       "seconds",
       ranks,
       {part("call", &Estimate::seconds), part("processors", &Estimate::processors_s),
        part("busiest link", &Estimate::wire_s), part("disks", &Estimate::disk_s)}},
  };
}

std::string row(std::string_view tag, const std::vector<std::string>& cells) {
  std::string line = "<tr>";
  for (const std::string& cell : cells) line += fmt::format("<{}>{}</{}>", tag, cell, tag);
  return line + "</tr>";
}

std::string limits_table(const Report& report) {
  std::string rows = row("th", {"limit", "value", "at most", ""});
  for (const Limit& limit : report.limits)
    rows += row("td", {fmt::format("{}<br><span class=\"soft\">{}</span>", escaped(limit.name),
                                   escaped(limit.rule)),
                       fmt::format("{:.2f}", limit.value), fmt::format("{:.2f}", limit.limit),
                       limit.reached() ? R"(<span class="good">reached</span>)"
                                       : R"(<span class="bad">missed</span>)"});
  return fmt::format(R"(<section class="card"><table>{}</table></section>)", rows);
}

std::string scales_table(const Report& report) {
  std::string rows = row("th", {"ranks", "nodes", "agents", "strategy", "member", "leader",
                                "requests", "agent's messages", "topology", "estimate"});
  for (const Scale& scale : report.scales) {
    const Figures at = figures_of(scale);
    rows += row("td", {fmt::format("{}", scale.ranks), fmt::format("{}", scale.nodes),
                       fmt::format("{}", scale.agents), std::string(name_of(scale.choice.strategy)),
                       short_number(at.member_ns) + " ns", short_number(at.leader_ns) + " ns",
                       short_number(at.requests), short_number(at.agent_messages),
                       short_number(at.topology_bytes) + " B",
                       fmt::format("{:.3g} s", scale.estimate.seconds)});
  }
  return fmt::format(R"(<section class="card"><table>{}</table></section>)", rows);
}

std::string lead_of(const Report& report) {
  const Workload& workload = report.request.workload;
  return fmt::format(
      "A collective {} of the pattern {}: {}B a rank in pieces of {}B, {} ranks a node. Planned by "
      "the code that serves programs; the ranks are simulated in one process.",
      workload.direction == Direction::write ? "write" : "read", name_of(workload.shape),
      short_number(static_cast<double>(workload.bytes_per_rank)),
      short_number(static_cast<double>(workload.piece_bytes)), workload.ranks_per_node);
}

std::string machine_of(const Report& report) {
  std::string text = "Machine:";
  for (const MachineField& field : machine_fields)
    text +=
        fmt::format(" {} {:g} ({});", field.name, report.request.machine.*field.value, field.text);
  return text + fmt::format(" shima {}", SHIMA_VERSION);
}

}  // namespace

std::string as_html(const Report& report) {
  std::string charts;
  for (const LineChart& chart : charts_of(report)) charts += draw(chart);
  return fmt::format(R"(<!doctype html><html lang="en"><head><meta charset="utf-8">)"
                     R"(<meta name="viewport" content="width=device-width, initial-scale=1">)"
                     "<title>shima simulate</title><style>{}</style></head><body><h1>Collective "
                     "calls at scale</h1>"
                     R"(<p class="soft">{}</p>{}{}{}<footer>{}</footer></body></html>)"
                     "\n",
                     style, escaped(lead_of(report)), limits_table(report), charts,
                     scales_table(report), escaped(machine_of(report)));
}

}  // namespace shima::simulate
