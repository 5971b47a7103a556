// Which members run on which node, and how many of them can be agents.
//
// Nodes are numbered from 0 in the order of their first members; the members of a node have indices
// in the order of their ranks. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shima {

// The place of a member.
struct Member {
  int node = 0;
  std::int32_t pid = 0;
  int cores = 1;  // usable by the members of its node together
};

class Topology {
 public:
  Topology() = default;
  // Nodes of `members` are numbered as above.
  explicit Topology(std::span<const Member> members);

  [[nodiscard]] int size() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int node_of(int rank) const { return place(rank).node; }
  // The member's index on its node.
  [[nodiscard]] int index_of(int rank) const { return place(rank).index; }
  // The ranks of a node, by index.
  [[nodiscard]] std::span<const int> ranks_on(int node) const {
    const Node& at = nodes_[static_cast<std::size_t>(node)];
    return std::span(ranks_).subspan(at.first_rank, at.rank_count);
  }
  [[nodiscard]] int cores_of(int node) const {
    return nodes_[static_cast<std::size_t>(node)].cores;
  }
  // The members on earlier nodes that can be agents: on each as many as it has cores. With
  // node_count() for `node`: of all nodes.
  [[nodiscard]] int candidates_before(int node) const {
    return node == node_count() ? candidates_
                                : nodes_[static_cast<std::size_t>(node)].candidates_before;
  }
  // Sets the cores of every node. Allocates nothing.
  void set_cores(int cores);
  // The node of a candidate, by its number.
  [[nodiscard]] int node_of_candidate(int candidate) const;

 private:
  struct Place {
    int node = 0;
    int index = 0;
  };
  struct Node {
    std::size_t first_rank = 0;  // in ranks_
    std::size_t rank_count = 0;
    int cores = 1;
    int candidates_before = 0;
  };
  void number_candidates();
  [[nodiscard]] const Place& place(int rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }

  std::vector<Place> places_;
  std::vector<Node> nodes_;
  std::vector<int> ranks_;  // of all nodes, one after the other
  int candidates_ = 0;
};

}  // namespace shima
