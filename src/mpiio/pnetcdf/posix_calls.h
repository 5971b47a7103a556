// The POSIX calls of PnetCDF that Shima serves.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "mpiio/pnetcdf/code_ranges.h"

namespace shima {

struct PosixCall {
  std::string_view name;
  void* function;  // takes the place of the C library's
};

// Each passes the call on to the C library unless it comes from a range of PnetCDF's code and names
// a striped file or a file on an I/O node.
[[nodiscard]] std::span<const PosixCall> posix_calls_of_pnetcdf();

// Makes calls from this range calls of PnetCDF; false if there are too many ranges.
[[nodiscard]] bool add_code_of_pnetcdf(CodeRange range);

}  // namespace shima
