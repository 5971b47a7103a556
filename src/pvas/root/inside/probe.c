/*
 * pvas-probe: checks from inside a task that the properties of a task hold.
 *
 * An ordinary program, not linked with Shima's libraries: it finds its partition as they do,
 * by the auxiliary vector.  Its exit status is 0 or the number of the check that failed (checks.h).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pvas/root/inside/checks.h"

static uintptr_t partition;
static const uintptr_t partition_bytes = (uintptr_t)128 << 30;
static const size_t some = 3 << 20;

static int is_own(const void* address) {
  return (uintptr_t)address >= partition && (uintptr_t)address < partition + partition_bytes;
}

/* musl does not move the break. */
static int break_is_own(void) {
  char* begin = sbrk(4096);
  return begin == (void*)-1 || (is_own(begin) && memset(begin, 1, 4096) && sbrk(0) == begin + 4096);
}

static int malloc_is_own(void) {
  char* small = calloc(1, 100);
  char* large = malloc(some);
  const int fine = small && large && is_own(small) && is_own(large) && memset(large, 1, some);
  free(small);
  free(large);
  return fine;
}

static void* map(int directly) {
  const int protection = PROT_READ | PROT_WRITE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  return directly ? (void*)syscall(SYS_mmap, NULL, some, protection, flags, -1, 0L)
                  : mmap(NULL, some, protection, flags, -1, 0);
}

static int mmap_is_own(void) {
  for (int directly = 0; directly < 2; ++directly) {
    void* memory = map(directly);
    const int fine = memory != MAP_FAILED && is_own(memory);
    if (memory != MAP_FAILED) munmap(memory, some);
    if (!fine) return 0;
  }
  return 1;
}

/* Two adjacent mappings, so that the first cannot grow in place. */
static int mremap_is_own(void) {
  char* first = map(0);
  char* second = map(0);
  if (first == MAP_FAILED || second == MAP_FAILED) return 0;
  first[some - 1] = 7;
  char* moved = mremap(first, some, 16 * some, MREMAP_MAYMOVE);
  return moved != MAP_FAILED && is_own(moved) && moved[some - 1] == 7 && is_own(moved + 16 * some);
}

static void* look_at_stack(void* fine) {
  int here = 0;
  *(int*)fine = is_own(&here);
  return NULL;
}

static int stack_is_own(void) {
  pthread_t thread;
  int fine = 0;
  const int failed = pthread_create(&thread, NULL, look_at_stack, &fine);
  if (failed == EAGAIN) errno = ENOMEM;
  if (failed != 0) return 0;
  pthread_join(thread, NULL);
  return fine;
}

/* This program cannot be loaded as a library; ld.so reports that if it finds the file. */
static int origin_is_right(void) {
  const char* said = dlopen("$ORIGIN/pvas-probe", RTLD_NOW) == NULL ? dlerror() : NULL;
  return said != NULL && strstr(said, "No such file") == NULL;
}

static int self_is_right(const char* program) {
  char link[4096] = "";
  if (readlink("/proc/self/exe", link, sizeof link - 1) <= 0) return 0;
  char* real = realpath("/proc/self/exe", NULL);
  const int fine = real != NULL && strcmp(real, program) == 0 && strcmp(link, program) == 0;
  free(real);
  return fine;
}

static int find_what_fails(int argc, char** argv) {
  partition = getauxval(0x53505641);
  if (partition == 0) return SHIMA_CHECK_CONTROL;
  if (!break_is_own()) return SHIMA_CHECK_BREAK;
  errno = 0;
  if (!malloc_is_own()) return SHIMA_CHECK_MALLOC;
  if (!mmap_is_own()) return SHIMA_CHECK_MMAP;
  if (!mremap_is_own()) return SHIMA_CHECK_MREMAP;
  if (!stack_is_own()) return SHIMA_CHECK_STACK;
  if (!origin_is_right()) return SHIMA_CHECK_ORIGIN;
  if (argc != 1 || !self_is_right(argv[0])) return SHIMA_CHECK_SELF;
  return SHIMA_CHECK_NONE;
}

int main(int argc, char** argv) {
  const int failed = find_what_fails(argc, argv);
  return failed != SHIMA_CHECK_NONE && errno == ENOMEM ? SHIMA_CHECK_UNKNOWN : failed;
}
