// The methods of moving bytes in a collective call.
#pragma once

#include <cstdint>

namespace shima {

enum class Path : std::uint8_t {
  independent,  // every member does its own I/O
  single_copy,  // agents' system calls use the members' memory
  pull,         // agents access the members' memory
  pack,         // members copy to and from the agents' shared windows
  message,      // agents on several nodes; members there send and receive
};

}  // namespace shima
