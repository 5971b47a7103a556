// The strategies of collective calls: which members do the I/O, and of which parts of the file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shima {

enum class Strategy : std::uint8_t {
  disk_directed,  // agents own parts of subfiles; members send them their bytes, each for itself
  two_phase,      // agents own equal ranges of the logical file
  subgroup,     // as disk_directed; between nodes, members exchange bytes through subgroup masters
  independent,  // every member does its own I/O
  io_node,      // I/O nodes are the agents of their subfiles; subgroup masters send to them
};

inline constexpr std::size_t strategy_count = 5;

}  // namespace shima
