// The rounds in which nodes join their values, for every number of nodes up to 70.
#include "group/node_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shima {
namespace {

using Joined = std::vector<int>;  // how often each node's value is included

struct Node {
  NodeRounds rounds;
  Joined joined;
  std::optional<NodeRound> round;  // not ended
  int round_count = 0;
  bool done = false;
};

// Nodes that exchange messages in random order; a message is received when its receiver is ready.
class Nodes {
 public:
  Nodes(int count, unsigned seed) : random_(seed) {
    for (int i = 0; i < count; ++i) {
      nodes_.push_back({NodeRounds(i, count), Joined(static_cast<std::size_t>(count)), {}});
      nodes_.back().joined[static_cast<std::size_t>(i)] = 1;
    }
  }

  // Runs until no node can go on.
  void run() {
    std::vector<int> order(nodes_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    for (bool moved = true; moved;) {
      moved = false;
      std::ranges::shuffle(order, random_);
      for (const int i : order) moved = step(i) || moved;
    }
  }

  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] bool in_flight() const {
    return std::ranges::any_of(queues_, [](const auto& queue) { return !queue.second.empty(); });
  }

 private:
  bool step(int i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    if (node.done) return false;
    using Kind = NodeRound::Kind;
    bool moved = false;
    if (!node.round) {
      node.round = node.rounds.next();
      node.done = !node.round;
      if (node.done) return true;
      ++node.round_count;
      if (node.round->kind == Kind::give || node.round->kind == Kind::swap)
        queues_[{i, node.round->peer}].push_back(node.joined);
      moved = true;
    }
    if (node.round->kind != Kind::give) {
      auto& queue = queues_[{node.round->peer, i}];
      if (queue.empty()) return moved;
      const bool adopts = node.round->kind == Kind::adopt;
      for (std::size_t k = 0; k < node.joined.size(); ++k)
        node.joined[k] = queue.front()[k] + (adopts ? 0 : node.joined[k]);
      queue.pop_front();
    }
    node.round.reset();
    return true;
  }

  std::mt19937 random_;
  std::vector<Node> nodes_;
  std::map<std::pair<int, int>, std::deque<Joined>> queues_;
};

TEST(NodeRounds, EveryNodeEndsWithEachValueOnce) {
  for (int count = 1; count <= 70; ++count) {
    SCOPED_TRACE(std::to_string(count) + " nodes");
    Nodes nodes(count, static_cast<unsigned>(count));
    nodes.run();
    const int log2 = std::bit_width(static_cast<unsigned>(count)) - 1;
    for (const Node& node : nodes.nodes()) {
      ASSERT_TRUE(node.done);
      ASSERT_EQ(node.joined, Joined(static_cast<std::size_t>(count), 1));
      ASSERT_LE(node.round_count, 2 + log2);
    }
    ASSERT_FALSE(nodes.in_flight());
  }
}

}  // namespace
}  // namespace shima
