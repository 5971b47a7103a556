// PnetCDF on striped files.
//
// PnetCDF opens files by MPI-IO, but looks at them by POSIX calls before that: ncmpi_open reads the
// file's signature by open(2) and read(2), and ncmpi_create empties or removes an existing file by
// truncate(2) or unlink(2). On a striped file these calls would reach the text of the master file.
// So Shima serves these calls of PnetCDF, and no others: it puts its own functions into the slots
// of the library or program that contains PnetCDF, and each of them serves only calls from
// PnetCDF's code and only files of Shima. A process without PnetCDF is unchanged.
#pragma once

namespace shima {

// Looks for PnetCDF among the programs and libraries that were loaded since the last call. Costs
// one load if there are none. The calls that PnetCDF makes before its POSIX calls call this.
void notice_pnetcdf() noexcept;

}  // namespace shima
