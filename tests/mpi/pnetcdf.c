/* An ordinary PnetCDF program: writes variables in several ways, or reads and checks them; `again`
 * does both twice, so that it creates a file that exists. `text` prints the first bytes of a file,
 * which it opens by POSIX calls of its own.
 *
 * RANKS: none
 * (compiled by netcdf.sh, pnetcdf_striped.py)
 */
#include <fcntl.h>
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { rows = 40, width = 24 };

static int rank, ranks;

#define NC(call)                                                                 \
  do {                                                                           \
    const int code_ = (call);                                                    \
    if (code_ != NC_NOERR) {                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, ncmpi_strerror(code_)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                              \
    }                                                                            \
  } while (0)

static double value_of(int row, int column) { return row * 1000.0 + column; }

static void fill(double part[rows][width]) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) part[r][c] = value_of(r, rank * width + c);
}

static void write_file(const char* path) {
  int file, dims[2], record_dims[2], columns, records, attribute = 7, request, status;
  double part[rows][width];
  const MPI_Offset start[2] = {0, rank * width}, count[2] = {rows, width};
  fill(part);
  NC(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  NC(ncmpi_def_dim(file, "row", rows, &dims[0]));
  NC(ncmpi_def_dim(file, "column", (MPI_Offset)width * ranks, &dims[1]));
  NC(ncmpi_def_dim(file, "time", NC_UNLIMITED, &record_dims[0]));
  record_dims[1] = dims[1];
  NC(ncmpi_def_var(file, "columns", NC_DOUBLE, 2, dims, &columns));
  NC(ncmpi_def_var(file, "records", NC_INT, 2, record_dims, &records));
  NC(ncmpi_put_att_int(file, NC_GLOBAL, "answer", NC_INT, 1, &attribute));
  NC(ncmpi_enddef(file));
  NC(ncmpi_put_vara_double_all(file, columns, start, count, &part[0][0]));
  for (int t = 0; t < 3; ++t) {
    int line[width];
    const MPI_Offset at[2] = {t, rank * width}, one[2] = {1, width};
    for (int c = 0; c < width; ++c) line[c] = 100 * t + rank * width + c;
    NC(ncmpi_iput_vara_int(file, records, at, one, line, &request));
    NC(ncmpi_wait_all(file, 1, &request, &status));
    NC(status);
  }
  NC(ncmpi_close(file));
}

static void read_file(const char* path) {
  int file, columns, records, attribute = 0;
  double part[rows][width], expected[rows][width];
  const MPI_Offset start[2] = {0, rank * width}, count[2] = {rows, width};
  fill(expected);
  NC(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
  NC(ncmpi_inq_varid(file, "columns", &columns));
  NC(ncmpi_inq_varid(file, "records", &records));
  NC(ncmpi_get_att_int(file, NC_GLOBAL, "answer", &attribute));
  NC(ncmpi_get_vara_double_all(file, columns, start, count, &part[0][0]));
  int wrong = attribute != 7 || memcmp(part, expected, sizeof part) != 0;
  NC(ncmpi_begin_indep_data(file));
  for (int t = 0; t < 3; ++t) {
    int line[width];
    const MPI_Offset at[2] = {t, rank * width}, one[2] = {1, width};
    NC(ncmpi_get_vara_int(file, records, at, one, line));
    for (int c = 0; c < width; ++c) wrong += line[c] != 100 * t + rank * width + c;
  }
  NC(ncmpi_end_indep_data(file));
  NC(ncmpi_close(file));
  if (wrong) {
    fprintf(stderr, "rank %d read wrong values\n", rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void print_text(const char* path) {
  char text[32] = "";
  const int file = open(path, O_RDONLY);
  const ssize_t found = file < 0 ? -1 : read(file, text, sizeof text - 1);
  printf("%.*s\n", (int)(found < 0 ? 0 : found), text);
  if (file >= 0) close(file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc == 3 && strcmp(argv[1], "write") == 0) write_file(argv[2]);
  if (argc == 3 && strcmp(argv[1], "read") == 0) read_file(argv[2]);
  if (argc == 3 && strcmp(argv[1], "text") == 0) print_text(argv[2]);
  for (int i = 0; i < 2 && argc == 3 && strcmp(argv[1], "again") == 0; ++i) {
    write_file(argv[2]);
    read_file(argv[2]);
  }
  MPI_Finalize();
  return argc == 3 ? 0 : 2;
}
