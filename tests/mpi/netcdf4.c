/* An ordinary parallel netCDF-4 program: writes a variable by columns, or reads and checks it.
 *
 * RANKS: none
 * (compiled by netcdf.sh)
 */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <string.h>

enum { rows = 40, width = 24 };

static int rank, ranks;

#define NC(call)                                                              \
  do {                                                                        \
    const int code_ = (call);                                                 \
    if (code_ != NC_NOERR) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, nc_strerror(code_)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                           \
    }                                                                         \
  } while (0)

static void fill(double part[rows][width]) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) part[r][c] = r * 1000.0 + rank * width + c;
}

static void write_file(const char* path) {
  int file, dims[2], variable;
  double part[rows][width];
  const size_t start[2] = {0, (size_t)rank * width}, count[2] = {rows, width};
  fill(part);
  NC(nc_create_par(path, NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  NC(nc_def_dim(file, "row", rows, &dims[0]));
  NC(nc_def_dim(file, "column", (size_t)width * (size_t)ranks, &dims[1]));
  NC(nc_def_var(file, "columns", NC_DOUBLE, 2, dims, &variable));
  NC(nc_enddef(file));
  NC(nc_var_par_access(file, variable, NC_COLLECTIVE));
  NC(nc_put_vara_double(file, variable, start, count, &part[0][0]));
  NC(nc_close(file));
}

static void read_file(const char* path) {
  int file, variable;
  double part[rows][width], expected[rows][width];
  const size_t start[2] = {0, (size_t)rank * width}, count[2] = {rows, width};
  fill(expected);
  NC(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  NC(nc_inq_varid(file, "columns", &variable));
  NC(nc_var_par_access(file, variable, NC_INDEPENDENT));
  NC(nc_get_vara_double(file, variable, start, count, &part[0][0]));
  NC(nc_close(file));
  if (memcmp(part, expected, sizeof part) != 0) {
    fprintf(stderr, "rank %d read wrong values\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 3 && strcmp(argv[1], "write") == 0) write_file(argv[2]);
  if (argc == 3 && strcmp(argv[1], "read") == 0) read_file(argv[2]);
  MPI_Finalize();
  return argc == 3 ? 0 : 2;
}
