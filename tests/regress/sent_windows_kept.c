/* Started by sent_windows_kept.py: prints the largest growth of a rank's memory in a collective
 * write of 160 MiB a rank.
 *
 * RANKS: none
 */
#include "mpi/expect.h"

enum { piece = 16384, warm_mib = 4, large_mib = 160 };

/* The largest amount of memory that this process has had; proc(5), /proc/PID/status. */
static long peak_kib(void) {
  FILE* const status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = -1;
  EXPECT(status != NULL);
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
  fclose(status);
  EXPECT(kib > 0);
  return kib;
}

static void write_all(MPI_File fh, const char* data, int mib) {
  MPI_Status status;
  EXPECT_OK(MPI_File_write_at_all(fh, 0, data, mib << 20, MPI_BYTE, &status));
}

int main(int argc, char** argv) {
  MPI_File fh;
  MPI_Datatype pieces;
  long before, grown, most;
  char* data;
  start_test(&argc, &argv, 100);
  data = malloc((size_t)large_mib << 20);
  memset(data, here + 1, (size_t)large_mib << 20);
  fh = open_fresh("shared.out");
  MPI_Type_vector((large_mib << 20) / piece, piece, piece * ranks, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  view_native(fh, (MPI_Offset)here * piece, MPI_BYTE, pieces);
  for (int i = 0; i < 3; i++) write_all(fh, data, warm_mib);
  before = peak_kib();
  write_all(fh, data, large_mib);
  grown = peak_kib() - before;
  MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (here == 0) printf("grown by %ld KiB\n", most);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&pieces);
  free(data);
  return end_test();
}
