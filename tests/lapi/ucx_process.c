// RANKS: none
// UCX in a task: there is one copy of it in the process, LAPI_Init adds no signal handler, and
// nothing of it stays in the environment. Compiled with an MPI, that is initialized before LAPI, or
// after it with the argument "late". Prints the path of UCX.
#ifdef WITH_MPI
#include <mpi.h>
#endif
#include <signal.h>

#include "check.h"

extern char** environ;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { has_own_settings = 1 };  // UCX needs some under a sanitizer (cmake/ShimaTest.cmake)
#else
enum { has_own_settings = 0 };
#endif

static int settings_of_ucx(void) {
  int count = 0;
  for (char** each = environ; *each != NULL; ++each) count += strncmp(*each, "UCX_", 4) == 0;
  return count;
}

static void begin_quietly(void) {
  struct sigaction before[32], after;
  for (int i = 1; i < 32; ++i) sigaction(i, NULL, &before[i]);
  const int own_settings = has_own_settings ? settings_of_ucx() : 0;
  begin();
  for (int i = 1; i < 32; ++i) {
    sigaction(i, NULL, &after);
    CHECK(after.sa_handler == before[i].sa_handler, "signal %d has a new handler", i);
  }
  CHECK(settings_of_ucx() == own_settings, "the environment has settings of UCX");
}

static int is_library(const char* path, const char* name) {
  const char* slash = strrchr(path, '/');
  return slash != NULL && strncmp(slash + 1, name, strlen(name)) == 0;
}

// The file of UCX in this process, or "none".
static const char* ucx_path(void) {
  static char found[4096];
  char line[8192];
  FILE* maps = fopen("/proc/self/maps", "r");
  strcpy(found, "none");
  while (fgets(line, sizeof line, maps) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const char* path = strchr(line, '/');
    if (path == NULL || !is_library(path, "libucp")) continue;
    CHECK(strcmp(found, "none") == 0 || strcmp(found, path) == 0, "two copies: %s and %s", found,
          path);
    strcpy(found, path);
  }
  fclose(maps);
  return found;
}

static void exchange(void) {
  enum { count = 20, most = 300000 };
  static unsigned char window[most], source[most];
  static lapi_cntr_t arrived;
  void** windows = calloc((size_t)num_tasks, sizeof *windows);
  void** counters = calloc((size_t)num_tasks, sizeof *counters);
  OK(LAPI_Address_init(hndl, window, windows));
  OK(LAPI_Address_init(hndl, &arrived, counters));
  const unsigned right = (unsigned)((task_id + 1) % num_tasks);
  const int left = (task_id + num_tasks - 1) % num_tasks;
  for (int i = 0; i < count; ++i) {
    const size_t len = (size_t)most >> i;
    fill(source, len, i + task_id);
    OK(LAPI_Put(hndl, right, len, windows[right], source, counters[right], NULL, NULL));
    OK(LAPI_Waitcntr(hndl, &arrived, 1, NULL));
    check_filled(window, len, i + left, "window");
    OK(LAPI_Gfence(hndl));
  }
}

int main(int argc, char** argv) {
#ifdef WITH_MPI
  const int is_late = argc > 1 && strcmp(argv[1], "late") == 0;
  if (is_late) begin_quietly();
  MPI_Init(&argc, &argv);
  if (!is_late) begin_quietly();
#else
  (void)argc, (void)argv;
  begin_quietly();
#endif
  exchange();
  printf("task %d: UCX: %s\n", task_id, ucx_path());
#ifdef WITH_MPI
  if (is_late) MPI_Finalize();
  end();
  if (!is_late) MPI_Finalize();
  ucx_path();
#else
  end();
#endif
  return 0;
}
