/* A program that uses only sessions has no MPI_COMM_WORLD for progress.
 *
 * RANKS: 2
 * ENV: SHIMA_LOG=error
 */
#include "sessions_progress.h"

static void use_a_session(void) {
#ifdef HAS_SESSIONS
  MPI_Session session = open_session();
  MPI_Comm comm = world_of(session);
  use_file(comm, open_file(comm));
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
