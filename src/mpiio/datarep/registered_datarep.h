// Data representations that the program converts itself, in any language.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace shima {

// Converts `count` elements between a user's buffer of a type and the file form; returns an MPI
// error code.
using ConversionFunction =
    std::function<int(void* buffer, MPI_Datatype type, MPI_Count count, void* file)>;

struct DatarepFunctions {
  ConversionFunction read;   // null: no conversion
  ConversionFunction write;  // null: no conversion
  std::function<int(MPI_Datatype type, MPI_Aint* extent)> extent;
  std::uint64_t max_elements;  // the largest count that the functions accept
};

// Registers a representation under its name. Local, thread-safe.
[[nodiscard]] Status register_datarep(std::string_view name, DatarepFunctions functions);

}  // namespace shima
