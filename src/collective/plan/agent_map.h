// Which members are agents, and which parts of the subfiles each of them owns.
//
// All answers are computed from the topology and the subfiles' ranges; no list of agents is made,
// whatever their number. If fewer agents are wanted than there are candidates, they are spread
// evenly over these. The domains follow the subfiles or the logical file. In the first case, every
// agent gets whole subfiles if there are enough of them, since each subfile has its own lock;
// otherwise the agents of a subfile get consecutive parts of it. In the second case, every agent
// gets an equal range of the file: its part of every subfile. The owner of a byte is
// computed, too. If I/O nodes are the agents, each part has one of its own, which is no member.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "group/topology.h"
#include "layout/subfile_cursor.h"

namespace shima {

// Domains and windows begin at multiples of this. All members must choose the same value, on nodes
// whose pages and blocks differ, so it does not depend on a machine or a file.
inline constexpr std::uint64_t grid_bytes = 4096;

// The members that can be agents.
enum class AgentCandidates : std::uint8_t {
  cores,     // as many on each node as its cores can serve
  nodes,     // the first of each node
  members,   // all
  io_nodes,  // none: the I/O node of each part is its agent
};

struct AgentLimits {
  int max_agents = 0;  // of all nodes; 0: as many as there are candidates
  AgentCandidates candidates = AgentCandidates::cores;
  std::uint64_t window_bytes = 0;  // large parts begin at multiples of this
};

// Consecutive agents.
struct AgentRange {
  int begin = 0;
  int end = 0;
};

class AgentMap {
 public:
  // No agents.
  AgentMap() = default;
  // `parts`: what to share out, at most one range of each subfile. `topology` must outlive the map.
  AgentMap(const Topology& topology, std::vector<Domain> parts, const AgentLimits& limits);
  // Shares out equal ranges of `span` of the logical file. `layout` must outlive the map, too.
  AgentMap(const Topology& topology, const Layout& layout, FileRange span,
           const AgentLimits& limits);

  // Agents are numbered from 0, by node.
  [[nodiscard]] int count() const { return count_; }
  // Whether the agents are no members.
  [[nodiscard]] bool are_io_nodes() const { return kind_ == AgentCandidates::io_nodes; }
  // Where messages to the agent go: a rank, or the number of an I/O node's agent.
  [[nodiscard]] int rank_of(int agent) const;
  // The agent that a member is.
  [[nodiscard]] std::optional<int> agent_at(int rank) const;
  [[nodiscard]] AgentRange agents_on(int node) const;
  // Parts of different subfiles; none if there is too little to share out.
  [[nodiscard]] std::vector<Domain> domains_of(int agent) const;

  // What is shared out.
  [[nodiscard]] std::span<const Domain> parts() const { return parts_; }
  struct Owner {
    int agent = 0;
    TargetOffset end;  // of its domain
  };
  // The owner of a byte of a part.
  [[nodiscard]] Owner owner_of(std::size_t part, TargetOffset at) const;

 private:
  [[nodiscard]] int first_candidate_of(int node) const;
  [[nodiscard]] int node_of_candidate(int candidate) const;
  // The first agent that is candidate `candidate` or a later one.
  [[nodiscard]] int agent_from(int candidate) const;
  [[nodiscard]] int candidate_of(int agent) const;
  [[nodiscard]] std::vector<Domain> parts_in(FileRange range) const;
  // The range of part `part` that the `turn`th of its agents owns.
  [[nodiscard]] TargetRange cut(std::size_t part, int turn) const;
  [[nodiscard]] int agents_of_part(std::size_t part) const;
  [[nodiscard]] int first_agent_of_part(std::size_t part) const;
  [[nodiscard]] std::size_t part_of_agent(int agent) const;
  // Of the logical file, as numbers of another type.
  [[nodiscard]] TargetRange share_of_span(int agent) const;

  const Topology* topology_ = nullptr;
  std::vector<Domain> parts_;
  const Layout* layout_ = nullptr;  // if logical ranges are shared out
  FileRange span_;                  // these
  std::uint64_t window_bytes_ = 0;
  AgentCandidates kind_ = AgentCandidates::cores;
  int candidates_ = 0;
  int count_ = 0;
};

// How many agents a collective call has at most if the user does not limit them.
[[nodiscard]] inline int agent_candidates(const Topology& topology) {
  return topology.candidates_before(topology.node_count());
}

}  // namespace shima
