/* Started by first_open_connections.py: prints how many connections to other hosts rank 0's host
 * has before the first file is opened, and after.
 *
 * RANKS: none
 */
#include "mpi/expect.h"

/* The established connections of this network namespace, loopback left out; proc(5), /proc/net/tcp.
 */
static int connections(void) {
  FILE* const list = fopen("/proc/net/tcp", "r");
  char line[512];
  int count = 0;
  EXPECT(list != NULL);
  while (fgets(line, sizeof line, list) != NULL) {
    unsigned local, remote, state;
    if (sscanf(line, " %*d: %x:%*x %x:%*x %x", &local, &remote, &state) == 3 && state == 1 &&
        (local & 0xff) != 127)
      count++;
  }
  fclose(list);
  return count;
}

int main(int argc, char** argv) {
  MPI_File fh;
  int before, after;
  start_test(&argc, &argv, 60);
  if (here != 0) usleep(500000); /* rank 0 counts first; a message would be a connection */
  before = connections();
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "shared.out", MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &fh));
  after = connections();
  EXPECT_OK(MPI_File_close(&fh));
  if (here == 0) printf("connections: %d before, %d after\n", before, after);
  return end_test();
}
