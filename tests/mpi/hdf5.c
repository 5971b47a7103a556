// RANKS: none
// (compiled by hdf5.sh) Parallel HDF5 on top of MPI-IO:  hdf5 write FILE | hdf5 read FILE.
// Three data sets of one three-dimensional field: by collective hyperslabs, by independent ones,
// and with strides in all dimensions. The bytes of the file do not depend on the time or on
// uninitialized memory.
#include <hdf5.h>

#include "mpi_check.h"

enum { nx = 24, ny = 36, nz = 50 };
typedef enum { rows, columns, strided } Shape;

static const char* const names[] = {"rows", "columns", "strided"};

#define CHECK_H5(call) check_h5((long long)(call), #call, __LINE__)
static long long check_h5(long long result, const char* what, int line) {
  if (result < 0) give_up(what, line);
  return result;
}

static int value_of(hsize_t x, hsize_t y, hsize_t z) {
  return (int)((x * ny + y) * nz + z) * 7 + 1;
}

typedef struct {
  hsize_t start[3], stride[3], count[3];
} Part;

// This rank's part of the field; the parts of all ranks cover it.
static Part part_of(Shape shape) {
  const hsize_t n = (hsize_t)ranks, r = (hsize_t)here;
  if (shape == rows)
    return (Part){{r * nx / n, 0, 0}, {1, 1, 1}, {(r + 1) * nx / n - r * nx / n, ny, nz}};
  if (shape == columns)
    return (Part){{0, 0, r * nz / n}, {1, 1, 1}, {nx, ny, (r + 1) * nz / n - r * nz / n}};
  return (Part){{0, r, 0}, {1, n, 1}, {nx, (ny - r + n - 1) / n, nz}};
}

static size_t size_of(const Part* part) {
  return (size_t)(part->count[0] * part->count[1] * part->count[2]);
}

static int* values_of(const Part* part) {
  int *values = malloc(size_of(part) * sizeof *values), *next = values;
  for (hsize_t x = 0; x < part->count[0]; ++x)
    for (hsize_t y = 0; y < part->count[1]; ++y)
      for (hsize_t z = 0; z < part->count[2]; ++z)
        *next++ =
            value_of(part->start[0] + x * part->stride[0], part->start[1] + y * part->stride[1],
                     part->start[2] + z * part->stride[2]);
  return values;
}

static hid_t dataset(hid_t file, const char* name, int writing) {
  const hsize_t sizes[] = {nx, ny, nz};
  if (!writing) return (hid_t)CHECK_H5(H5Dopen2(file, name, H5P_DEFAULT));
  const hid_t space = (hid_t)CHECK_H5(H5Screate_simple(3, sizes, NULL));
  const hid_t creation = (hid_t)CHECK_H5(H5Pcreate(H5P_DATASET_CREATE));
  CHECK_H5(H5Pset_obj_track_times(creation, 0));
  CHECK_H5(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  const hid_t set = (hid_t)CHECK_H5(
      H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Pclose(creation);
  H5Sclose(space);
  return set;
}

static void move(hid_t file, Shape shape, int writing) {
  const Part part = part_of(shape);
  const hsize_t count = size_of(&part);
  int* values = values_of(&part);
  const hid_t set = dataset(file, names[shape], writing);
  const hid_t in_file = H5Dget_space(set), in_memory = H5Screate_simple(1, &count, NULL);
  const hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  CHECK_H5(
      H5Pset_dxpl_mpio(transfer, shape == rows ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE));
  CHECK_H5(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, part.start, part.stride, part.count, NULL));
  if (writing) {
    CHECK_H5(H5Dwrite(set, H5T_NATIVE_INT, in_memory, in_file, transfer, values));
  } else {
    int* found = calloc(count, sizeof *found);
    CHECK_H5(H5Dread(set, H5T_NATIVE_INT, in_memory, in_file, transfer, found));
    REQUIRE(memcmp(found, values, count * sizeof *found) == 0);
    free(found);
  }
  H5Pclose(transfer);
  H5Sclose(in_memory);
  H5Sclose(in_file);
  H5Dclose(set);
  free(values);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 60);
  REQUIRE(argc == 3);
  const int writing = strcmp(argv[1], "write") == 0;
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  CHECK_H5(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  const hid_t file = writing ? H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, access)
                             : H5Fopen(argv[2], H5F_ACC_RDONLY, access);
  CHECK_H5(file);
  for (Shape shape = rows; shape <= strided; ++shape) move(file, shape, writing);
  CHECK_H5(H5Fclose(file));
  H5Pclose(access);
  return end_test();
}
