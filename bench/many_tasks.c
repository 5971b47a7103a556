// many_tasks: starting many programs, as tasks of one space and as processes, and what each costs.
//
//   many_tasks tasks|processes COUNT
//
// Each one says that it runs and waits for its input to end; the times are from the call that
// starts it until it says so, and of that call alone. When all run, the page tables and the
// resident memory are counted: of the space once, of the processes each ("Pss", a page's share
// where several have it). Prints a JSON object.
#include "tasks.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char** environ;
enum { most = 512 };
static int said[2], held[2];

static int run_child(void) {
  char byte = 0;
  if (write(said[1], &byte, 1) != 1) return 1;
  return read(held[0], &byte, 1) != 0;
}

static pid_t start_process(char** arguments) {
  pid_t child;
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ)) die("posix_spawn");
  return child;
}

static pid_t start_task(pvas_space* space, char** arguments, int* task) {
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) die("readlink");
  pvas_program program = {.file = path, .arguments = arguments};
  if (pvas_spawn(space, &program, task)) die("pvas_spawn");
  return pvas_process(space, *task);
}

// The number in kB after a word of a file of /proc.
static double kb_of(pid_t pid, const char* file, const char* word) {
  char path[64], line[256];
  double kb = 0;
  snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
  FILE* from = fopen(path, "r");
  while (from && fgets(line, sizeof line, from))
    if (strncmp(line, word, strlen(word)) == 0) kb = atof(line + strlen(word));
  if (from) fclose(from);
  return kb;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "child") == 0) {
    sscanf(argv[2], "%d,%d", &said[1], &held[0]);
    return run_child();
  }
  if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) > most) return 2;
  static double called[most], ready[most];
  static int tasks[most];
  static pid_t pids[most];
  const int in_space = strcmp(argv[1], "tasks") == 0, count = atoi(argv[2]);
  char numbers[32], byte;
  pvas_space* space = NULL;
  if (pipe(said) || pipe(held)) die("pipe");
  fcntl(held[1], F_SETFD, FD_CLOEXEC);
  snprintf(numbers, sizeof numbers, "%d,%d", said[1], held[0]);
  char* arguments[] = {"many_tasks", "child", numbers, NULL};
  if (in_space && pvas_create(NULL, &space)) die("pvas_create");
  for (int i = 0; i < count; i++) {
    double begun = now_ns();
    pids[i] = in_space ? start_task(space, arguments, &tasks[i]) : start_process(arguments);
    called[i] = now_ns() - begun;
    if (read(said[0], &byte, 1) != 1) die("a child ends");
    ready[i] = now_ns() - begun;
  }
  double tables = 0, resident = 0, shares = 0;
  for (int i = 0; i < (in_space ? 1 : count); i++) {
    tables += kb_of(pids[i], "status", "VmPTE:");
    resident += kb_of(pids[i], "status", "VmRSS:");
    shares += kb_of(pids[i], "smaps_rollup", "Pss:");
  }
  close(held[1]);
  for (int i = 0, status = 0; i < count; i++)
    if (in_space ? pvas_wait(space, tasks[i], -1, &status) : waitpid(pids[i], &status, 0) < 0)
      die("wait");
  pvas_destroy(space);
  printf(
      "{\"program\":\"many_tasks\",\"way\":\"%s\",\"count\":%d,\"call_us\":%.1f,\"ready_us\":%.1f,"
      "\"tables_kb\":%.1f,\"resident_kb\":%.1f,\"share_kb\":%.1f}\n",
      argv[1], count, median_of(called, count) / 1e3, median_of(ready, count) / 1e3, tables / count,
      resident / count, shares / count);
  return 0;
}
