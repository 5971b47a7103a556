// The direction of a transfer, seen from the program.
#pragma once

#include <cstdint>

namespace shima {

enum class Direction : std::uint8_t { read, write };

}  // namespace shima
