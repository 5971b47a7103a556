// The methods of moving bytes between the members of a collective call.
#pragma once

#include <cstdint>

namespace shima {

enum class Path : std::uint8_t {
  single_copy,  // agents' system calls use the members' memory
  pull,         // agents access the members' memory
  pack,         // members copy to and from the agents' shared windows
  message,      // agents on several nodes; subgroups of members exchange messages with them
};

// How the servers of windows (agents, and subgroup masters) get bytes of members on their node.
enum class NearPath : std::uint8_t {
  pull,  // they access the members' memory
  pack,  // the members copy to and from shared windows
};

// Which agents on other nodes a subgroup tells whether it has bytes for them.
enum class RequestsTo : std::uint8_t {
  all,      // all: an agent counts the requests
  touched,  // those for which it has bytes: agents must learn when no further request comes
};

}  // namespace shima
