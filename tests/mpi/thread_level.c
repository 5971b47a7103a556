/* The program gets the thread level that it requested, whatever level Shima needs.
 *
 * RANKS: 1 2
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int provided = -1, asked = -1, main_thread = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Query_thread(&asked);
  MPI_Is_thread_main(&main_thread);
  if (provided != MPI_THREAD_FUNNELED || asked != provided || !main_thread) {
    fprintf(stderr, "provided %d, asked %d, main %d\n", provided, asked, main_thread);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
