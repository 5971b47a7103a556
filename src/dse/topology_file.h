// A topology as a user names it: a text, or a file with a graph.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/file_text.h"
#include "dse/plan/topology.h"

namespace shima::dse {

inline constexpr std::string_view graph_file_word = "graph:";

// Topology::parse(), and "graph:FILE".
[[nodiscard]] inline Result<Topology> read_topology(const std::string& text, int tasks) {
  if (!text.starts_with(graph_file_word)) return Topology::parse(text, tasks);
  const std::string path = text.substr(graph_file_word.size());
  const auto graph = file_text(path);
  if (!graph) return fail_errno(graph.error().sys_errno, "reading the graph " + path);
  return Topology::parse_graph(*graph, tasks, path);
}

}  // namespace shima::dse
