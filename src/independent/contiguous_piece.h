// Bytes that are contiguous in the file and in memory: the access that needs no pattern.
#pragma once

#include <cstddef>
#include <span>

#include "base/direction.h"
#include "base/units.h"

namespace shima {

struct ContiguousPiece {
  Direction direction;
  FileOffset begin;
  std::span<std::byte> memory;  // at least one byte; a write only reads it
};

}  // namespace shima
