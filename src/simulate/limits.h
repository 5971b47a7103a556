// The limits of planning at scale, and the figures of a scale that they concern. Pure.
#pragma once

#include <vector>

#include "simulate/report.h"

namespace shima::simulate {

// The worst or typical figure of the samples of each kind.
struct Figures {
  double member_ns = 0;           // median
  double member_least_ns = 0;     // not disturbed by other programs
  double member_allocations = 0;  // most
  double member_bytes = 0;        // most
  double leader_ns = 0;           // median
  double leader_bytes = 0;        // most, allocated
  double leader_messages = 0;     // most
  double requests = 0;            // of the master that exceeds its needs the most
  double requests_needed = 0;     // of that master: agents with bytes of its subgroup
  double master_ns = 0;           // of that master
  double master_bytes = 0;        // that it keeps
  double master_bytes_a_request = 0;
  double agent_messages = 0;   // most that an agent receives
  double agent_subgroups = 0;  // of that agent
  double in_a_window = 0;      // the most of an agent
  double window_excess = 0;    // messages in a window beyond the agent's subgroups
  double topology_bytes = 0;
};

[[nodiscard]] Figures figures_of(const Scale& scale);

[[nodiscard]] PiecesProbe probe_pieces(const Request& request, const Meter& meter);

[[nodiscard]] std::vector<Limit> limits_of(const Report& report);

}  // namespace shima::simulate
