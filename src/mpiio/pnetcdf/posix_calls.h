// The POSIX calls that Shima serves: PnetCDF's, and those by which programs remove files.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "mpiio/pnetcdf/code_ranges.h"

namespace shima {

struct PosixCall {
  // `pnetcdf`: code in the ranges of add_code_of_pnetcdf().
  enum class Callers : std::uint8_t { pnetcdf, any };

  std::string_view name;
  void* function;  // takes the place of the C library's
  Callers callers;
};

// Each serves a call that names a striped file and comes from one of its callers, and passes every
// other call on to the C library. PnetCDF may also name files on I/O nodes.
[[nodiscard]] std::span<const PosixCall> served_posix_calls();

// Makes calls from this range calls of PnetCDF; false if there are too many ranges.
[[nodiscard]] bool add_code_of_pnetcdf(CodeRange range);

}  // namespace shima
