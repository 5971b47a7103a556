// The members of one collective call in one process: their digests are joined and the call is
// planned by the code that serves programs.
#pragma once

#include <functional>
#include <vector>

#include "simulate/workload.h"

namespace shima::simulate {

// Told how many ranks of how many are done, from time to time.
using Notice = std::function<void(int done, int all)>;

class Job {
 public:
  // Joins the digests of all ranks: on each node in the order of its members, then between the
  // nodes in the rounds of NodeRounds.
  explicit Job(const Workload& workload, const Notice& notice = {});
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] const Digest& digest() const { return digest_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  // What each member executes after the digests are joined.
  [[nodiscard]] Plan make_plan() const;
  // The digests of a node's members, by index.
  [[nodiscard]] std::vector<Digest> near_digests(int node) const;

 private:
  Workload workload_;
  Topology topology_;
  Layout layout_;
  Digest digest_;
  Plan plan_;
};

[[nodiscard]] Digest joined(std::span<const Digest> digests);
// The result of every node after the rounds between nodes, from the digests of the nodes.
[[nodiscard]] std::vector<Digest> joined_in_rounds(std::vector<Digest> nodes);
// The messages that a node's leader sends in the rounds.
[[nodiscard]] int messages_in_rounds(int node, int node_count);

}  // namespace shima::simulate
