// The POSIX calls that Shima serves: PnetCDF's, and those by which programs remove files.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "mpiio/pnetcdf/code_ranges.h"

namespace shima {

struct PosixCall {
  enum class Callers : std::uint8_t { pnetcdf, any };

  std::string_view name;
  void* function;  // takes the place of the C library's
  Callers callers;
};

// Each passes the call on to the C library unless it names a striped file, or for PnetCDF a file on
// an I/O node, and comes from a range of PnetCDF's code, if it is served for no other callers.
[[nodiscard]] std::span<const PosixCall> served_posix_calls();

// Makes calls from this range calls of PnetCDF; false if there are too many ranges.
[[nodiscard]] bool add_code_of_pnetcdf(CodeRange range);

}  // namespace shima
