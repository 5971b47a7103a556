// Handles as integers: for Fortran, and for MPI-5's C tools.
#include "mpiio/entry.h"

using namespace shima;

MPI_Fint MPI_File_c2f(MPI_File file) { return number_of(file); }
SHIMA_EXPORT(File_c2f);

MPI_File MPI_File_f2c(MPI_Fint file) { return handle_of(file); }
SHIMA_EXPORT(File_f2c);

#if MPI_VERSION >= 5
int MPI_File_toint(MPI_File file) { return number_of(file); }
SHIMA_EXPORT(File_toint);

MPI_File MPI_File_fromint(int file) { return handle_of(file); }
SHIMA_EXPORT(File_fromint);
#endif
