/* MPI_THREAD_MULTIPLE, with its locks, was asked for also where all ranks share a node and nothing
 * needs it. There the MPI now works at the level that the program asks for. The MPI's own library
 * is asked, since Shima answers MPI_Query_thread for the program.
 *
 * RANKS: 2
 */
#include <dlfcn.h>

#include "mpi/expect.h"

static int real_level(void) {
  const char* names[] = {"libmpich.so.12", "libmpi.so.40", "libmpi_abi.so.0", "libmpi_abi.so.1",
                         "libmpi.so.12"};
  int level = -1;
  for (int i = 0; i < 5 && level < 0; ++i) {
    void* library = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL) continue;
    int (*ask)(int*) = (int (*)(int*))dlsym(library, "PMPI_Query_thread");
    EXPECT_OK(ask(&level));
  }
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
