// A choice that a user may make or leave to Shima.
#pragma once

#include <cstdint>

namespace shima {

enum class Toggle : std::uint8_t { automatic, enable, disable };

}  // namespace shima
