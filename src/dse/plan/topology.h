// Virtual topologies of a job: which tasks are neighbors of each other, and under which names.
//
// A grid (ring, mesh, torus) numbers its tasks row by row: the last coordinate counts fastest.
// Neighbors in dimension K are named dimK- and dimK+; the last dimension also has west and east,
// and left and right, the one before it north and south, the one before that down and up. In a
// hypercube, dimK is the task whose number differs in bit K. A graph has the names that its text
// gives. Neighbors are computed, so a topology of any size takes no memory, except a graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace shima::dse {

struct Neighbor {
  std::string name;
  int task = 0;
  friend bool operator==(const Neighbor&, const Neighbor&) = default;
};

class Topology {
 public:
  enum class Kind : std::uint8_t { ring, mesh, torus, hypercube, graph };
  static constexpr int most_tasks = 1 << 20;
  static constexpr std::size_t most_dimensions = 20;

  // "ring", "ring:8", "mesh:4x2", "torus:4x2x2", "hypercube:3", "graph{0 next=1; 1 next=0}".
  // Without extents a mesh or torus of `tasks` has two dimensions, as equal as possible. If
  // `tasks` is 0, the text alone says how many there are.
  [[nodiscard]] static Result<Topology> parse(std::string_view text, int tasks);
  // The text of a graph: lines, or parts between semicolons, "TASK NAME=TASK NAME=TASK ...".
  // `source` names it in errors.
  [[nodiscard]] static Result<Topology> parse_graph(std::string_view text, int tasks,
                                                    std::string_view source);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] int tasks() const { return tasks_; }
  // parse() makes the same topology of it.
  [[nodiscard]] std::string text() const;
  // The extents of a grid; a hypercube has dimensions of two; none for a graph.
  [[nodiscard]] const std::vector<int>& extents() const { return extents_; }
  // Nothing for a graph.
  [[nodiscard]] std::vector<int> coordinates(int task) const;
  // The neighbor of `task` with a name, if it has one.
  [[nodiscard]] std::optional<int> neighbor(int task, std::string_view name) const;
  // All neighbors, each under one name.
  [[nodiscard]] std::vector<Neighbor> neighbors(int task) const;

 private:
  Topology(Kind kind, int tasks, std::vector<int> extents)
      : kind_(kind), tasks_(tasks), extents_(std::move(extents)) {}
  [[nodiscard]] bool is_closed() const { return kind_ != Kind::mesh; }
  [[nodiscard]] std::optional<int> along(int task, std::size_t dimension, int step) const;
  [[nodiscard]] std::optional<std::pair<std::size_t, int>> direction(std::string_view name) const;
  [[nodiscard]] std::string name_of(std::size_t dimension, int step) const;

  Kind kind_;
  int tasks_;
  std::vector<int> extents_;
  std::map<int, std::vector<Neighbor>> edges_;  // of a graph, in the order of the text
};

}  // namespace shima::dse
