// RANKS: none
// (compiled by mount_lib.py) Ranks that perform commands on a file. Rank 0 reads them from its
// stdin, one per line, and prints one line of answer each: open PATH, write OFFSET BYTES VALUE,
// read OFFSET BYTES (the common value of the bytes, or "mixed"), size, resize BYTES, sync, close;
// end of input: exit. Every command is collective; in a write each rank writes an interleaved part.
#include "mpi/expect.h"

enum { piece_bytes = 1000, most_bytes = 64 << 20 };

static MPI_File fh;
static unsigned char* buffer;

static void write_pieces(long long offset, long long bytes, int value) {
  memset(buffer, value, piece_bytes);
  for (long long at = (long long)here * piece_bytes; at < bytes;
       at += (long long)ranks * piece_bytes) {
    const long long left = bytes - at;
    EXPECT_OK(MPI_File_write_at(fh, offset + at, buffer,
                                (int)(left < piece_bytes ? left : piece_bytes), MPI_BYTE,
                                MPI_STATUS_IGNORE));
  }
}

static void read_all(long long offset, long long bytes, char* answer) {
  MPI_Status status;
  int found = 0;
  EXPECT(bytes <= most_bytes);
  EXPECT_OK(MPI_File_read_at_all(fh, offset, buffer, (int)bytes, MPI_BYTE, &status));
  MPI_Get_count(&status, MPI_BYTE, &found);
  for (int i = 1; i < found; ++i) {
    if (buffer[i] == buffer[0]) continue;
    sprintf(answer, "mixed: %d, at %d %d", buffer[0], i, buffer[i]);
    return;
  }
  sprintf(answer, "%d x %d", found, found > 0 ? buffer[0] : 0);
}

static int obey(char* line, char* answer) {
  char word[20] = "", path[4000] = "";
  long long a = 0, b = 0, c = 0;
  MPI_Offset size = 0;
  strcpy(answer, "done");
  sscanf(line, "%19s %3999s", word, path);
  sscanf(line, "%*s %lld %lld %lld", &a, &b, &c);
  if (strcmp(word, "open") == 0) fh = open_world(path, MPI_MODE_CREATE | MPI_MODE_RDWR);
  if (strcmp(word, "write") == 0) write_pieces(a, b, (int)c);
  if (strcmp(word, "read") == 0) read_all(a, b, answer);
  if (strcmp(word, "resize") == 0) EXPECT_OK(MPI_File_set_size(fh, a));
  if (strcmp(word, "sync") == 0) EXPECT_OK(MPI_File_sync(fh));
  if (strcmp(word, "close") == 0) EXPECT_OK(MPI_File_close(&fh));
  if (strcmp(word, "size") == 0) {
    EXPECT_OK(MPI_File_get_size(fh, &size));
    sprintf(answer, "%lld", (long long)size);
  }
  return word[0] != '\0';
}

int main(int argc, char** argv) {
  char line[4100], answer[100];
  start_test(&argc, &argv, 200);
  buffer = malloc(most_bytes);
  for (;;) {
    memset(line, 0, sizeof line);
    if (here == 0 && fgets(line, sizeof line, stdin) == NULL) line[0] = '\0';
    MPI_Bcast(line, sizeof line, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (!obey(line, answer)) break;
    MPI_Barrier(MPI_COMM_WORLD);
    if (here == 0) printf("%s\n", answer), fflush(stdout);
  }
  free(buffer);
  return end_test();
}
