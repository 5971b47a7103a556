// Rendezvous of processes on several nodes that were not started together.
//
// They know the array of their hosts and process IDs, one address at which the first of them
// listens, and a key. Those of a node meet as in roll_call.h. Each then connects to the first one,
// proves the key, and tells how its node's meeting ended and at which port it listens itself. The
// first one sends all of this, or the worst error, to all, and each connects to those before it in
// the array. All leave with the same outcome, if they come before the time limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "group/process_set.h"
#include "net/key_proof.h"

namespace shima {

inline constexpr int most_over_nodes = 512;

struct SetPlace {
  std::string host;  // as its hostname is, or the part before the first dot of it
  pid_t pid = 0;
};

struct NodesCall {
  std::span<const SetPlace> places;  // the same on all; includes this process
  std::uint64_t number = 0;
  std::optional<std::chrono::milliseconds> timeout;
  std::string meeting_host;  // where the first one listens
  std::string meeting_port;
  Key key;
  Status ready = {};  // an error of this process, with which all leave
};

// Errors as those of call_roll(), and those of connections.
[[nodiscard]] Result<std::unique_ptr<ProcessSet>> meet_over_nodes(const NodesCall& call);

}  // namespace shima
