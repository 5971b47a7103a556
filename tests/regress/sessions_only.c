/* A program that uses only sessions has neither MPI_COMM_WORLD nor MPI_COMM_SELF. Views of derived
 * datatypes and error handlers of files must not use the latter, or the MPI aborts. One rank is not
 * tested: there MPICH 4.0 has not started its network when MPI_Test makes progress, and crashes.
 *
 * RANKS: 2 3
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

/* Open MPI 5 has sessions but reports MPI-3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)

static MPI_Comm comm_of(MPI_Session session) {
  MPI_Comm comm;
  MPI_Group group;
  EXPECT_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  EXPECT_OK(MPI_Comm_create_from_group(group, "regress", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &here);
  MPI_Comm_size(comm, &ranks);
  return comm;
}

static void use_handlers(MPI_File fh) {
  MPI_Errhandler handler;
  EXPECT_OK(MPI_File_get_errhandler(fh, &handler));
  EXPECT_OK(MPI_File_set_errhandler(fh, handler));
  MPI_Errhandler_free(&handler);
  EXPECT_CLASS(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
}

static void use_files(MPI_Comm comm) {
  int value, found[16];
  MPI_Datatype type;
  MPI_File fh;
  MPI_Request request;
  EXPECT_OK(
      MPI_File_open(comm, "sessions.out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  use_handlers(fh);
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
  MPI_Type_commit(&type);
  view_native(fh, 0, MPI_INT, type);
  MPI_Type_free(&type);
  value = 10 + here;
  EXPECT_OK(MPI_File_write_ordered(fh, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_iread_at_all(fh, 0, found, ranks, MPI_INT, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(found[r], 10 + r);
  EXPECT_OK(MPI_File_close(&fh));
}

static void use_a_session(void) {
  MPI_Session session;
  EXPECT_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  MPI_Comm comm = comm_of(session);
  use_files(comm);
  MPI_Comm_free(&comm);
  EXPECT_OK(MPI_Session_finalize(&session));
}

#else
static void use_a_session(void) {
  start_test(NULL, NULL, 30);
  end_test();
}
#endif

int main(void) {
  alarm(50);
  use_a_session();
  return 0;
}
