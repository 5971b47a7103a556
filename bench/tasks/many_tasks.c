// many_tasks: the cost of starting many programs, as tasks of one space and as processes.
//
//   many_tasks tasks|processes COUNT
//
// Each one reports that it runs and waits for the end of its input; the times are from the call
// that starts it until its report, and of that call alone. When all run, the page tables and the
// resident memory are measured: once for the space, for each of the processes ("Pss": the
// proportional share of shared pages). Prints a JSON object.
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

static double called[most], ready[most];
static int tasks[most];
static pid_t pids[most];

static void start_all(pvas_space* space, int count) {
  char numbers[32], byte;
  snprintf(numbers, sizeof numbers, "%d,%d", said[1], held[0]);
  char* arguments[] = {"many_tasks", "child", numbers, NULL};
  for (int i = 0; i < count; i++) {
    double begun = now_ns();
    pids[i] = space ? start_task(space, arguments, &tasks[i]) : start_process(arguments);
    called[i] = now_ns() - begun;
    if (read(said[0], &byte, 1) != 1) die("a child ends");
    ready[i] = now_ns() - begun;
  }
}

// The memory of the whole space, divided by its tasks; or the mean of the processes.
static double kb_of_each(pvas_space* space, int count, const char* name, const char* word) {
  double all = 0;
  for (int i = 0; i < (space ? 1 : count); i++) all += kb_of(pids[i], name, word);
  return all / count;
}

static void wait_for_all(pvas_space* space, int count) {
  close(held[1]);
  for (int i = 0, status = 0; i < count; i++)
    if (space ? pvas_wait(space, tasks[i], -1, &status) : waitpid(pids[i], &status, 0) < 0)
      die("wait");
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "child") == 0) {
    sscanf(argv[2], "%d,%d", &said[1], &held[0]);
    return run_child();
  }
  if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) > most) return 2;
  const int count = atoi(argv[2]);
  pvas_space* space = NULL;
  if (pipe(said) || pipe(held)) die("pipe");
  fcntl(held[1], F_SETFD, FD_CLOEXEC);
  if (strcmp(argv[1], "tasks") == 0 && pvas_create(NULL, &space)) die("pvas_create");
  start_all(space, count);
  printf(
      "{\"program\":\"many_tasks\",\"way\":\"%s\",\"count\":%d,\"call_us\":%.1f,\"ready_us\":%.1f,"
      "\"tables_kb\":%.1f,\"resident_kb\":%.1f,\"share_kb\":%.1f}\n",
      argv[1], count, median_of(called, count) / 1e3, median_of(ready, count) / 1e3,
      kb_of_each(space, count, "status", "VmPTE:"), kb_of_each(space, count, "status", "VmRSS:"),
      kb_of_each(space, count, "smaps_rollup", "Pss:"));
  wait_for_all(space, count);
  pvas_destroy(space);
  return 0;
}
