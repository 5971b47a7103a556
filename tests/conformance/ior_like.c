/* The access patterns of IOR: segments of one block per rank in transfers of fixed size, into one
 * shared file or one file per rank, by offset or by view, independent or collective, in order or
 * not; each block is read back by another rank than its writer.
 *
 * RANKS: 1 4 7
 * VARIANTS: striped
 */
#include <stdlib.h>

#include "mpi/expect.h"

enum { transfer_bytes = 3000, transfers = 8, segments = 3 };
enum { block_bytes = transfer_bytes * transfers };

static unsigned char buffer[transfer_bytes], found[transfer_bytes];

/* The data of rank `owner` in its n-th transfer. */
static void fill(unsigned char* to, int owner, int n) {
  for (int i = 0; i < transfer_bytes; ++i) to[i] = (unsigned char)(owner * 31 + n * 7 + i % 251);
}

struct mode {
  const char* name;
  int own_files, together, by_view, backwards;
};

static MPI_Offset place_of(const struct mode* mode, int owner, int n) {
  const MPI_Offset segment = n / transfers, within = (MPI_Offset)(n % transfers) * transfer_bytes;
  if (mode->own_files || mode->by_view) return segment * block_bytes + within;
  return (segment * ranks + owner) * block_bytes + within;
}

static MPI_File open_file(const struct mode* mode, int owner) {
  MPI_File fh;
  char name[100];
  snprintf(name, sizeof name, "ior.%s.%d", mode->name, mode->own_files ? owner : 0);
  EXPECT_OK(MPI_File_open(mode->own_files ? MPI_COMM_SELF : MPI_COMM_WORLD, name,
                          MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  if (mode->by_view) {
    MPI_Datatype block, spread;
    MPI_Type_contiguous(block_bytes, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)block_bytes * ranks, &spread);
    MPI_Type_commit(&spread);
    EXPECT_OK(MPI_File_set_view(fh, (MPI_Offset)owner * block_bytes, MPI_BYTE, spread, "native",
                                MPI_INFO_NULL));
    MPI_Type_free(&block);
    MPI_Type_free(&spread);
  }
  return fh;
}

static void run(const struct mode* mode) {
  const int all = transfers * segments, other = (here + 1) % ranks;
  MPI_Status status;
  int count;
  MPI_File fh = open_file(mode, here);
  for (int i = 0; i < all; ++i) {
    const int n = mode->backwards ? all - 1 - i : i;
    fill(buffer, here, n);
    if (mode->together)
      EXPECT_OK(MPI_File_write_at_all(fh, place_of(mode, here, n), buffer, transfer_bytes, MPI_BYTE,
                                      &status));
    else
      EXPECT_OK(MPI_File_write_at(fh, place_of(mode, here, n), buffer, transfer_bytes, MPI_BYTE,
                                  &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, transfer_bytes);
  }
  EXPECT_OK(MPI_File_sync(fh));
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  fh = open_file(mode, other);
  for (int i = 0; i < all; ++i) {
    const int n = mode->backwards ? i : all - 1 - i;
    fill(buffer, other, n);
    if (mode->together)
      EXPECT_OK(MPI_File_read_at_all(fh, place_of(mode, other, n), found, transfer_bytes, MPI_BYTE,
                                     &status));
    else
      EXPECT_OK(
          MPI_File_read_at(fh, place_of(mode, other, n), found, transfer_bytes, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, transfer_bytes);
    EXPECT(memcmp(buffer, found, transfer_bytes) == 0);
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  static const struct mode modes[] = {
      {"shared", 0, 0, 0, 0},      {"shared_all", 0, 1, 0, 0},
      {"shared_view", 0, 0, 1, 0}, {"shared_view_all", 0, 1, 1, 0},
      {"own", 1, 0, 0, 0},         {"own_all", 1, 1, 0, 0},
      {"backwards", 0, 0, 0, 1},   {"backwards_view_all", 0, 1, 1, 1},
  };
  start_test(&argc, &argv, 100);
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; ++i) run(&modes[i]);
  return end_test();
}
