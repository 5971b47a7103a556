// A pair of ranks in a session: the first starts a nonblocking receive and sleeps in write_at_all;
// the second can write only after its synchronous send, for which the sleeping rank's MPI must make
// progress. For sessions_progress.c and sessions_after_world.c.
#pragma once

#include "mpi/expect.h"

/* Open MPI 5 has sessions but reports MPI-3.1. */
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_SESSIONS

enum { message_bytes = 8 << 20, block_bytes = 64 << 10 };

static MPI_Comm world_of(MPI_Session session) {
  MPI_Comm comm;
  MPI_Group group;
  EXPECT_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
  EXPECT_OK(MPI_Comm_create_from_group(group, "regress", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &here);
  MPI_Comm_size(comm, &ranks);
  return comm;
}

static void write_block(MPI_File fh) {
  static unsigned char block[block_bytes];
  memset(block, here + 1, sizeof block);
  EXPECT_OK(MPI_File_write_at_all(fh, (MPI_Offset)here * block_bytes, block, block_bytes, MPI_BYTE,
                                  MPI_STATUS_IGNORE));
}

static void receive_while_writing(MPI_Comm comm, MPI_File fh, unsigned char* message) {
  MPI_Request request;
  EXPECT_OK(MPI_Irecv(message, message_bytes, MPI_BYTE, here + 1, 7, comm, &request));
  write_block(fh);
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_EQ(message[0], here + 2);
  EXPECT_EQ(message[message_bytes - 1], here + 2);
}

static void send_then_write(MPI_Comm comm, MPI_File fh, unsigned char* message, unsigned late_s) {
  sleep(late_s);
  memset(message, here + 1, message_bytes);
  EXPECT_OK(MPI_Ssend(message, message_bytes, MPI_BYTE, here - 1, 7, comm));
  write_block(fh);
}

static MPI_File open_file(MPI_Comm comm) {
  MPI_File fh;
  EXPECT_OK(
      MPI_File_open(comm, "sessions.out", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  return fh;
}

static void use_file(MPI_Comm comm, MPI_File fh) {
  unsigned char* message = calloc(1, message_bytes);
  for (unsigned late_s = 0; late_s < 2; ++late_s) {
    if (here % 2 == 0)
      receive_while_writing(comm, fh, message);
    else
      send_then_write(comm, fh, message, late_s);
  }
  EXPECT_OK(MPI_File_close(&fh));
  free(message);
}

static MPI_Session open_session(void) {
  MPI_Session session;
  EXPECT_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  return session;
}

static void close_session(MPI_Session session, MPI_Comm comm) {
  MPI_Comm_free(&comm);
  EXPECT_OK(MPI_Session_finalize(&session));
}

#endif
