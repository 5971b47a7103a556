/* A session may outlive MPI_Finalize, and so may a file that was opened while MPI_COMM_WORLD was
 * there: progress must go on without it.
 *
 * RANKS: 2
 * ENV: SHIMA_LOG=error
 */
#include "sessions_progress.h"

static void use_a_session(void) {
#ifdef HAS_SESSIONS
  MPI_Init(NULL, NULL);
  MPI_Session session = open_session();
  MPI_Comm comm = world_of(session);
  MPI_File fh = open_file(comm);
  MPI_Finalize();
  use_file(comm, fh);
  close_session(session, comm);
#else
  start_test(NULL, NULL, 30);
  end_test();
#endif
}

int main(void) {
  alarm(40);
  use_a_session();
  return 0;
}
