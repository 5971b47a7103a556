// Handles as integers: for Fortran, and for MPI-5's C tools.
#include "mpiio/entry/entry.h"

using namespace shima;

// The standard ABI leaves Fortran handles to the Fortran library.
#ifndef SHIMA_MPI_ABI
MPI_Fint MPI_File_c2f(MPI_File file) { return number_of(file); }
SHIMA_EXPORT(File_c2f);

MPI_File MPI_File_f2c(MPI_Fint file) { return handle_of(file); }
SHIMA_EXPORT(File_f2c);
#endif

#if MPI_VERSION >= 5
int MPI_File_toint(MPI_File file) { return number_of(file); }
SHIMA_EXPORT(File_toint);

MPI_File MPI_File_fromint(int file) { return handle_of(file); }
SHIMA_EXPORT(File_fromint);
#endif
