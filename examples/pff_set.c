/* pff_set: processes that know each other's IDs write one file together.
 *
 *   cc pff_set.c $(pkg-config --cflags --libs shima-pff) && ./a.out set.dat
 *
 * The processes are children here, because a parent can easily pass the IDs to its children; any
 * processes of one user on one machine can form a set.  Each has every fourth block of the file. */
#include <shima/pff.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { members = 4, block = 4096, blocks_each = 100 };

static void check(int64_t code) {
  if (code >= 0) return;
  fprintf(stderr, "process %d: %s\n", (int)getpid(), pff_error_message());
  exit(1);
}

static void work(const pid_t* pids, const char* path) {
  static char mine[blocks_each * block], found[blocks_each * block];
  pff_set* set;
  pff_file* file;
  pff_where blocks;
  int me;

  /* Waits until all have joined, at most ten seconds.  The number 1 distinguishes this set from
     others of the same processes. */
  check(pff_set_join(pids, members, 1, 10000, &set));
  me = pff_set_member(set);
  memset(mine, 'a' + me, sizeof mine);

  check(pff_open_in(set, path, PFF_READ | PFF_WRITE | PFF_CREATE, NULL, NULL, &file));
  blocks = pff_stride((int64_t)me * block, block, members * block, sizeof mine);
  check(pff_write_all(file, blocks, mine));
  check(pff_read_all(file, blocks, found));
  if (memcmp(mine, found, sizeof mine) != 0) exit(1);
  check(pff_close(file));
  pff_set_leave(set);
}

int main(int argc, char** argv) {
  pid_t pids[members];
  int pipes[2], i, status, failed = 0;
  if (argc != 2 || pipe(pipes) != 0) {
    fputs("usage: pff_set PATH\n", stderr);
    return 2;
  }
  for (i = 0; i < members; i++) {
    pids[i] = fork();
    if (pids[i] < 0) return 1;
    if (pids[i] == 0) {
      /* The array of IDs is complete only when the last child exists. */
      if (read(pipes[0], pids, sizeof pids) != sizeof pids) return 1;
      work(pids, argv[1]);
      return 0;
    }
  }
  for (i = 0; i < members; i++)
    if (write(pipes[1], pids, sizeof pids) != sizeof pids) return 1;
  for (i = 0; i < members; i++) {
    waitpid(pids[i], &status, 0);
    failed |= status;
  }
  if (!failed) printf("%d processes wrote %d blocks each\n", members, blocks_each);
  return failed != 0;
}
