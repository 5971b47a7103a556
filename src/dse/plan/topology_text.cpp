// Topologies as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <span>

#include "dse/plan/topology.h"
#include "dse/plan/words.h"

namespace shima::dse {
namespace {

using Kind = Topology::Kind;

struct NamedKind {
  std::string_view name;
  Kind kind;
};
constexpr std::array<NamedKind, 5> kinds{{{"ring", Kind::ring},
                                          {"mesh", Kind::mesh},
                                          {"torus", Kind::torus},
                                          {"hypercube", Kind::hypercube},
                                          {"graph", Kind::graph}}};

std::string_view name_of_kind(Kind kind) {
  return std::ranges::find(kinds, kind, &NamedKind::kind)->name;
}

std::unexpected<Error> wrong(std::string_view text, std::string_view rule) {
  return fail(Code::bad_argument, fmt::format("topology {}: {}", text, rule));
}

// "4x2": positive numbers whose product is small enough.
std::optional<std::vector<int>> parse_extents(std::string_view text) {
  std::vector<int> extents;
  std::int64_t product = 1;
  while (true) {
    const auto cross = std::min(text.find('x'), text.size());
    const auto extent = parse_number(text.substr(0, cross));
    if (!extent || *extent < 1 || extents.size() == Topology::most_dimensions) return {};
    product *= *extent;
    if (product > Topology::most_tasks) return {};
    extents.push_back(*extent);
    if (cross == text.size()) return extents;
    text.remove_prefix(cross + 1);
  }
}

// Of a hypercube.
std::optional<std::vector<int>> parse_dimensions(std::string_view text) {
  const auto count = parse_number(text);
  if (!count || *count < 0 || *count > static_cast<int>(Topology::most_dimensions)) return {};
  return std::vector<int>(static_cast<std::size_t>(*count), 2);
}

// Two dimensions, as equal as possible, the longer one first.
std::vector<int> balanced(int tasks) {
  int shorter = 1;
  for (int i = 1; i * i <= tasks; ++i)
    if (tasks % i == 0) shorter = i;
  return {tasks / shorter, shorter};
}

int product_of(const std::vector<int>& extents) {
  int product = 1;
  for (const int extent : extents) product *= extent;
  return product;
}

bool is_name(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.';
  };
  return !word.empty() && std::ranges::all_of(word, is_plain);
}

}  // namespace

Result<Topology> Topology::parse(std::string_view text, int tasks) {
  constexpr std::string_view graph_start = "graph{";
  if (text.starts_with(graph_start) && text.ends_with('}'))
    return parse_graph(text.substr(graph_start.size(), text.size() - graph_start.size() - 1), tasks,
                       "topology");
  const auto colon = std::min(text.find(':'), text.size());
  const auto named = std::ranges::find(kinds, text.substr(0, colon), &NamedKind::name);
  if (named == kinds.end() || named->kind == Kind::graph)
    return wrong(text,
                 "it is ring, mesh, torus or hypercube, with extents as in torus:4x2, or "
                 "graph:FILE");
  const Kind kind = named->kind;
  std::vector<int> extents;
  if (colon < text.size()) {
    auto parsed = kind == Kind::hypercube ? parse_dimensions(text.substr(colon + 1))
                                          : parse_extents(text.substr(colon + 1));
    if (!parsed || (kind == Kind::ring && parsed->size() != 1))
      return wrong(text, kind == Kind::ring        ? "write ring:TASKS"
                         : kind == Kind::hypercube ? "write hypercube:DIMENSIONS, at most 20"
                                                   : "write extents as in torus:4x2");
    extents = *std::move(parsed);
  } else if (tasks == 0) {
    return wrong(text, "it does not say how many tasks there are; give their number by -n");
  } else if (kind == Kind::ring) {
    extents = {tasks};
  } else if (kind == Kind::hypercube) {
    if (!std::has_single_bit(static_cast<unsigned>(tasks)))
      return wrong(text, fmt::format("{} tasks are no power of two", tasks));
    extents.assign(static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(tasks))), 2);
  } else {
    extents = balanced(tasks);
  }
  const int product = product_of(extents);
  if (tasks != 0 && product != tasks)
    return wrong(text, fmt::format("it has {} tasks, and the job {}", product, tasks));
  return Topology(kind, product, std::move(extents));
}

Result<Topology> Topology::parse_graph(std::string_view text, int tasks, std::string_view source) {
  Topology graph(Kind::graph, 0, {});
  int last = -1;
  int line_number = 0;
  for (const std::string_view line : parts_of(text, "\n")) {
    ++line_number;
    const auto bad = [&](std::string_view rule) {
      return fail(Code::bad_argument, fmt::format("{}, line {}: {}", source, line_number, rule));
    };
    for (const std::string_view part : parts_of(line.substr(0, line.find('#')), ";")) {
      const auto words = words_of(part);
      if (words.empty()) continue;
      const auto from = parse_number(words.front());
      if (!from || *from < 0 || *from >= most_tasks)
        return bad(
            fmt::format("'{}' is no task's number; write TASK NAME=TASK ...", words.front()));
      last = std::max(last, *from);
      auto& edges = graph.edges_[*from];
      for (const std::string_view word : std::span(words).subspan(1)) {
        const auto equals = std::min(word.find('='), word.size());
        const auto to = parse_number(word.substr(std::min(equals + 1, word.size())));
        const std::string name(word.substr(0, equals));
        if (!is_name(name) || !to || *to < 0 || *to >= most_tasks)
          return bad(fmt::format("'{}' is no neighbor; write NAME=TASK, as in next=3", word));
        if (std::ranges::count(edges, name, &Neighbor::name) > 0)
          return bad(fmt::format("task {} has two neighbors named {}", *from, name));
        edges.push_back({name, *to});
        last = std::max(last, *to);
      }
    }
  }
  if (tasks == 0 && last < 0)
    return fail(Code::bad_argument, fmt::format("{} has no task", source));
  if (tasks != 0 && last >= tasks)
    return fail(Code::bad_argument, fmt::format("{} names task {}; the job has tasks 0 to {}",
                                                source, last, tasks - 1));
  graph.tasks_ = tasks != 0 ? tasks : last + 1;
  return graph;
}

std::string Topology::text() const {
  const std::string name(name_of_kind(kind_));
  if (kind_ == Kind::hypercube) return fmt::format("{}:{}", name, extents_.size());
  if (kind_ != Kind::graph) return fmt::format("{}:{}", name, fmt::join(extents_, "x"));
  std::string all;
  for (const auto& [task, neighbors] : edges_) {
    all += fmt::format("{}{}", all.empty() ? "" : ";", task);
    for (const Neighbor& neighbor : neighbors)
      all += fmt::format(" {}={}", neighbor.name, neighbor.task);
  }
  return fmt::format("{}{{{}}}", name, all);
}

}  // namespace shima::dse
