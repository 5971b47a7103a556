/* If all ranks share a node, the MPI must work at the thread level that the program requests:
 * MPI_THREAD_MULTIPLE, with its locks, is not needed there. The test queries the MPI's own library,
 * by the name that Shima gives it, because Shima answers MPI_Query_thread.
 *
 * RANKS: 2
 */
#include <dlfcn.h>

#include "mpi/expect.h"

static int real_level(void) {
  int level = -1;
  static const char* const names[] = {"libshima-real-mpich.so", "libshima-real-openmpi.so",
                                      "libshima-real-abi.so"};
  void* library = NULL;
  for (int i = 0; i < 3 && library == NULL; ++i) library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
  EXPECT(library != NULL);
  int (*ask)(int*) = (int (*)(int*))dlsym(library, "PMPI_Query_thread");
  EXPECT_OK(ask(&level));
  return level;
}

int main(int argc, char** argv) {
  int provided = -1;
  alarm(60);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  EXPECT_EQ(provided, MPI_THREAD_FUNNELED);
  EXPECT(real_level() >= MPI_THREAD_SINGLE);
  EXPECT(real_level() < MPI_THREAD_MULTIPLE);
  return end_test();
}
