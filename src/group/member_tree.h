// The tree along which the members of a communicator meet for the first time: pure arithmetic.
//
// It is binomial, with member 0 as its root. On the way up each level joins pairs of subtrees of
// 2^level members with consecutive ranks; the way down is its reverse. So a member exchanges
// something with log2(members) others at most, and where the members of a node have consecutive
// ranks, few pairs are on different nodes: Open MPI connects two ranks when the first sends to the
// other, which takes longer than the message.
#pragma once

#include <algorithm>
#include <bit>

namespace shima {

// Whom a member sends to and receives from in an exchange.
struct Partners {
  static constexpr int none = -1;
  int to = none;
  int from = none;
};

// A member's part in the tree.
class MemberTree {
 public:
  MemberTree(int rank, int size) : rank_(rank), size_(size) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int levels() const {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(size_ - 1)));
  }
  [[nodiscard]] Partners up(int level) const {
    const int distance = 1 << level;
    if (rank_ % distance != 0) return {};
    if ((rank_ & distance) != 0) return {.to = rank_ - distance};
    return rank_ + distance < size_ ? Partners{.from = rank_ + distance} : Partners{};
  }
  [[nodiscard]] Partners down(int level) const {
    const Partners partners = up(level);
    return {.to = partners.from, .from = partners.to};
  }
  // The members in the subtree of `rank`, which are `rank` and those after it, at a level in which
  // it sends up.
  [[nodiscard]] int subtree(int rank, int level) const {
    return std::min(1 << level, size_ - rank);
  }

 private:
  int rank_;
  int size_;
};

}  // namespace shima
