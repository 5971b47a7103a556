// Joins one value of each node into the value of all, in about log2(nodes) rounds of messages.
//
// Recursive doubling among the largest power of two of nodes: in round k a node swaps what it has
// joined so far with the node whose number differs in bit k. Each further node gives its value to a
// node of the power of two before the rounds, and gets the result after them. Pure.
#pragma once

#include <bit>
#include <optional>

namespace shima {

// What a node does in one round with one other node.
struct NodeRound {
  enum class Kind {
    give,   // send the value
    take,   // receive a value and join it
    swap,   // both
    adopt,  // receive the result
  };
  Kind kind = Kind::swap;
  int peer = 0;  // a node
};

class NodeRounds {
 public:
  NodeRounds(int node, int node_count)
      : node_(node),
        doubling_(static_cast<int>(std::bit_floor(static_cast<unsigned>(node_count)))),
        further_(node_count - doubling_) {}

  // The next round of this node; nothing after the last.
  [[nodiscard]] std::optional<NodeRound> next() {
    const int round = round_++;
    if (node_ >= doubling_) {
      if (round > 1) return std::nullopt;
      return NodeRound{round == 0 ? NodeRound::Kind::give : NodeRound::Kind::adopt,
                       node_ - doubling_};
    }
    const bool has_further = node_ < further_;
    if (has_further && round == 0) return NodeRound{NodeRound::Kind::take, node_ + doubling_};
    const int bit = round - (has_further ? 1 : 0);
    if (1 << bit < doubling_) return NodeRound{NodeRound::Kind::swap, node_ ^ 1 << bit};
    if (has_further && 1 << bit == doubling_)
      return NodeRound{NodeRound::Kind::give, node_ + doubling_};
    return std::nullopt;
  }

 private:
  int node_;
  int doubling_;  // nodes that swap
  int further_;   // the others
  int round_ = 0;
};

}  // namespace shima
