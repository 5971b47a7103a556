/* Started by stock_member.sh; opens a file collectively and prints the outcome.
 *
 *   stock_member late SECONDS   on MPI_COMM_WORLD, this rank so much later
 *   stock_member spawn          with a spawned process that does not run under Shima
 *
 * RANKS: none
 */
#include "mpi/expect.h"

static void open_with(MPI_Comm comm) {
  MPI_File fh;
  const int code =
      MPI_File_open(comm, "shared.out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh);
  printf("rank %d of %d: %s\n", here, ranks, code == MPI_SUCCESS ? "open" : "refused");
  fflush(stdout);
  if (code != MPI_SUCCESS) {
    sleep(2); /* so that the other ranks can report the same */
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

static void open_with_spawned(char* program) {
  char* arguments[] = {"-u", "LD_AUDIT", program, "child", NULL};
  MPI_Comm child, merged;
  EXPECT_OK(MPI_Comm_spawn("/usr/bin/env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                           MPI_ERRCODES_IGNORE));
  MPI_Intercomm_merge(child, 0, &merged);
  open_with(merged);
}

int main(int argc, char** argv) {
  MPI_Comm parent, merged;
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    start_spawned_test(&argc, &argv, 60);
  } else {
    start_test(&argc, &argv, 60);
  }
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    MPI_Intercomm_merge(parent, 1, &merged);
    open_with(merged);
  } else if (argc > 2) {
    sleep((unsigned)atoi(argv[2]));
    open_with(MPI_COMM_WORLD);
  } else {
    open_with_spawned(argv[0]);
  }
  return end_test();
}
