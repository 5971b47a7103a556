// Which members run on which node, and how many of them can be agents.
//
// Nodes are numbered from 0 in the order of their first members. The members of a node have indices
// in the order of their ranks, but with several nodes those of one NUMA domain follow one another,
// so that consecutive indices, of which subgroups are made, are near to each other. Launchers place
// ranks in blocks (the first k on the first node, ...) or deal them to the nodes in turn, some at a
// time, and mostly fill one domain before the next. Both are formulas, so a topology has one entry
// for each row of equal nodes, whatever the number of ranks. Only other placements are listed rank
// by rank. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace shima {

// The place of a member.
struct Member {
  int node = 0;
  int cores = 1;  // usable by the members of its node together
  // To which its process is bound, by any number that differs within the node; no_domain: to none
  // or several.
  int numa_domain = no_domain;

  static constexpr int no_domain = -1;
};

// The ranks of a node, by index. Its topology must outlive it.
class NodeRanks {
 public:
  explicit NodeRanks(std::span<const int> listed)
      : listed_(listed.data()), count_(static_cast<int>(listed.size())) {}
  // `block` ranks from `first` on, as many again `stride` ranks later, and so on.
  NodeRanks(int first, int block, int stride, int count)
      : first_(first), block_(block), stride_(stride), count_(count) {}

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count_); }
  [[nodiscard]] int operator[](std::size_t index) const {
    if (listed_ != nullptr) return listed_[index];
    const int i = static_cast<int>(index);
    return first_ + i / block_ * stride_ + i % block_;
  }
  [[nodiscard]] int front() const { return (*this)[0]; }

 private:
  const int* listed_ = nullptr;
  int first_ = 0;
  int block_ = 1;
  int stride_ = 0;
  int count_ = 0;
};

class Topology {
 public:
  Topology() = default;
  // Nodes of `members` are numbered as above.
  explicit Topology(std::span<const Member> members);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int node_count() const { return node_count_; }
  [[nodiscard]] int node_of(int rank) const;
  // The member's index on its node.
  [[nodiscard]] int index_of(int rank) const;
  [[nodiscard]] NodeRanks ranks_on(int node) const;
  [[nodiscard]] int cores_of(int node) const { return row_of_node(node).cores; }
  // The members on earlier nodes that can be agents: on each as many as it has cores. With
  // node_count() for `node`: of all nodes.
  [[nodiscard]] int candidates_before(int node) const;
  // The members on earlier nodes. With node_count() for `node`: all.
  [[nodiscard]] int members_before(int node) const;
  // The node of a member, by its number if members are counted node by node.
  [[nodiscard]] int node_of_place(int place) const;
  // The node of a candidate, by its number.
  [[nodiscard]] int node_of_candidate(int candidate) const;
  // Sets the cores of every node. Allocates nothing.
  void set_cores(int cores);
  // Sets the cores of each node.
  void set_node_cores(std::span<const int> cores);

  // Makes every member a node of its own, with one core. Allocates nothing, if there are members.
  void set_apart();

  // For a message to another process: few words, unless the placement is listed.
  [[nodiscard]] std::vector<std::int32_t> words() const;
  // Errors: internal, if no topology has these words.
  [[nodiscard]] static Result<Topology> of_words(std::span<const std::int32_t> words);
  // The part of the words that changes with the cores. Reading it sets the cores of a topology of
  // the same placement; an error, as above, leaves it as it was.
  [[nodiscard]] std::vector<std::int32_t> row_words() const;
  [[nodiscard]] Status read_rows(std::span<const std::int32_t> words);

 private:
  // Consecutive nodes with the same numbers of members and of cores.
  struct Row {
    int first_node = 0;
    int members = 0;  // of each node
    int cores = 1;
    int first_member = 0;  // the members on earlier nodes
    int candidates_before = 0;

    [[nodiscard]] int candidates() const;  // of each node
  };
  struct Place {
    int node = 0;
    int index = 0;
  };
  // dealt: `block_` ranks at a time to each node in turn.
  enum class Kind : std::uint8_t { consecutive, dealt, listed };

  struct Node {
    int members = 0;
    int cores = 1;
  };

  void make_rows(std::span<const Member> members);
  // Behind the rows so far.
  void add_nodes(const Node& each, int count);
  void number_candidates();
  [[nodiscard]] Kind kind_of(std::span<const Member> members) const;
  void list(std::span<const Member> members);
  static constexpr std::size_t words_of_row = 3;
  [[nodiscard]] bool add_rows(std::span<const std::int32_t> rows);
  [[nodiscard]] bool is_dealt() const;
  [[nodiscard]] bool list_ranks(std::span<const std::int32_t> ranks);
  [[nodiscard]] const Row& row_of_node(int node) const;
  [[nodiscard]] Place place_of(int rank) const;

  int size_ = 0;
  int node_count_ = 0;
  Kind kind_ = Kind::consecutive;
  int block_ = 1;
  std::vector<Row> rows_;
  std::vector<Place> places_;  // listed: by rank
  std::vector<int> ranks_;     // listed: of all nodes, one after the other
};

}  // namespace shima
