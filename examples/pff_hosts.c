/* pff_hosts: processes on several machines write the columns of one array together, without MPI.
 *
 *   cc pff_hosts.c $(pkg-config --cflags --libs shima-pff) -o pff_hosts
 *   host1$ ./pff_hosts iod://host1:7000/run/columns.dat host1:7100 <places
 *   host2$ the same
 *
 * Each process prints its host and process ID, and reads those of all, in the same order, from
 * standard input; whoever starts them brings the lists together.  The file is on an I/O node (shima
 * iod), or in a directory that all machines share. */
#define _GNU_SOURCE
#include <shima/pff.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { most = 64, rows = 512, piece = 4096 };

static void check(int64_t code) {
  if (code >= 0) return;
  fprintf(stderr, "pff_hosts: %s\n", pff_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  static char hosts[most][256];
  pff_place places[most];
  char own[256] = "";
  unsigned char *mine, *found;
  const size_t size = (size_t)rows * piece;
  pff_where column;
  pff_set* set;
  pff_file* file;
  int count = 0, pid, me;
  size_t i;
  if (argc != 3) {
    fputs("usage: pff_hosts PATH HOST:PORT <PLACES\n", stderr);
    return 2;
  }
  gethostname(own, sizeof own - 1);
  printf("%s %d\n", own, getpid());
  fflush(stdout);
  while (count < most && scanf("%255s %d", hosts[count], &pid) == 2) {
    places[count].host = hosts[count];
    places[count].pid = pid;
    count++;
  }
  check(pff_set_join_hosts(places, count, 1, 30000, argv[2], &set));
  me = pff_set_member(set);

  mine = malloc(size);
  found = malloc(size);
  if (mine == NULL || found == NULL) return 1;
  for (i = 0; i < size; i++) mine[i] = (unsigned char)(i / 7 + (size_t)me);
  column = pff_stride(me * (int64_t)piece, piece, (int64_t)piece * count, size);
  check(pff_open_in(set, argv[1], PFF_READ | PFF_WRITE | PFF_CREATE, NULL, NULL, &file));
  check(pff_write_all(file, column, mine));
  check(pff_read_all(file, column, found));
  for (i = 0; i < size; i++)
    if (found[i] != mine[i]) {
      fprintf(stderr, "pff_hosts: member %d: byte %zu is wrong\n", me, i);
      return 1;
    }
  check(pff_close(file));
  pff_set_leave(set);
  free(mine);
  free(found);
  printf("member %d of %d: good\n", me, count);
  return 0;
}
