// RANKS: none
// Writes and reads a file collectively over I/O nodes until a call fails on this rank, then goes on
// without it. Each rank prints the error class and how long the failed call took.
//
// The first argument is the number of bytes of a rank, the second what fails: "node", or "disk":
// then calls in the other direction still succeed. What a successful write has stored, a successful
// read must find.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { piece_bytes = 1024, local_bytes = 1000 };

static int rank, ranks;

static void must(int is_so, const char* what) {
  if (is_so) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static const char* name_of(int error) {
  int class = MPI_ERR_UNKNOWN;
  MPI_Error_class(error, &class);
  if (class == MPI_SUCCESS) return "MPI_SUCCESS";
  if (class == MPI_ERR_IO) return "MPI_ERR_IO";
  return class == MPI_ERR_NO_SPACE ? "MPI_ERR_NO_SPACE" : "another class";
}

static MPI_File open_striped(void) {
  static const char* const hints[][2] = {{"shima_targets", "a,b"},
                                         {"striping_factor", "2"},
                                         {"striping_unit", "5000"},
                                         {"cb_buffer_size", "65536"}};
  MPI_File file;
  MPI_Info info;
  MPI_Info_create(&info);
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; ++i)
    MPI_Info_set(info, hints[i][0], hints[i][1]);
  must(MPI_File_open(MPI_COMM_WORLD, "lost.data", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file) ==
           MPI_SUCCESS,
       "lost.data could not be opened");
  MPI_Info_free(&info);
  return file;
}

// Another file, on no I/O node.
static void use_local_file(void) {
  static char mine[local_bytes], found[local_bytes];
  MPI_File file;
  const int next = (rank + 1) % ranks;
  memset(mine, rank + 1, sizeof mine);
  must(MPI_File_open(MPI_COMM_WORLD, "after.data",
                     MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                     &file) == MPI_SUCCESS,
       "after.data could not be opened");
  must(MPI_File_write_at_all(file, (MPI_Offset)rank * local_bytes, mine, local_bytes, MPI_BYTE,
                             MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "after.data could not be written");
  must(MPI_File_sync(file) == MPI_SUCCESS, "after.data could not be synced");
  MPI_Barrier(MPI_COMM_WORLD);
  must(MPI_File_read_at_all(file, (MPI_Offset)next * local_bytes, found, local_bytes, MPI_BYTE,
                            MPI_STATUS_IGNORE) == MPI_SUCCESS,
       "after.data could not be read");
  for (int i = 0; i < local_bytes; ++i)
    must(found[i] == next + 1, "after.data has other bytes than were written");
  must(MPI_File_close(&file) == MPI_SUCCESS, "after.data could not be closed");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int bytes = argc > 1 ? atoi(argv[1]) : 0;
  const int is_disk = argc > 2 && strcmp(argv[2], "disk") == 0;
  must(bytes > 0 && bytes % piece_bytes == 0, "usage: iod_directed BYTES node|disk");
  char* const data = malloc((size_t)bytes);
  must(data != NULL, "no memory");
  MPI_File file = open_striped();
  MPI_Datatype pieces;
  MPI_Type_vector(bytes / piece_bytes, piece_bytes, piece_bytes * ranks, MPI_BYTE, &pieces);
  MPI_Type_commit(&pieces);
  MPI_File_set_view(file, (MPI_Offset)piece_bytes * rank, MPI_BYTE, pieces, "native",
                    MPI_INFO_NULL);
  int error = MPI_SUCCESS, writes = 0;
  double took_s = 0;
  for (long call = 0; error == MPI_SUCCESS; ++call) {
    const char value = (char)(call / 2 + rank);
    writes = call % 2 == 0;
    memset(data, writes ? value : ~value, (size_t)bytes);
    const double begun_s = MPI_Wtime();
    error = writes ? MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                   : MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    took_s = MPI_Wtime() - begun_s;
    for (int i = 0; i < bytes && error == MPI_SUCCESS; ++i)
      must(data[i] == value, "a successful read found other bytes than were written");
    if (call == 20 && rank == 0) {
      printf("going\n");
      fflush(stdout);
    }
  }
  const int other = !is_disk ? MPI_SUCCESS
                    : writes
                        ? MPI_File_read_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE)
                        : MPI_File_write_at_all(file, 0, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  must(other == MPI_SUCCESS, "a call in the other direction failed");
  const int closed = MPI_File_close(&file);
  must(closed == MPI_SUCCESS || !is_disk, "lost.data could not be closed");
  use_local_file();
  printf("rank %d: %s in a %s after %.2f s; goes on\n", rank, name_of(error),
         writes ? "write" : "read", took_s);
  fflush(stdout);
  free(data);
  MPI_Type_free(&pieces);
  MPI_Finalize();
  return 0;
}
