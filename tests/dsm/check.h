// Checks for programs with dsm.h: each failure names the task, the call and the values.
#pragma once

#include <shima/dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dsm* memory;
static int task, tasks, way;

#define CHECK(condition, ...)                                        \
  do {                                                               \
    if (!(condition)) {                                              \
      fprintf(stderr, "%s:%d: task %d: ", __FILE__, __LINE__, task); \
      fprintf(stderr, __VA_ARGS__);                                  \
      fprintf(stderr, " (%s)\n", #condition);                        \
      exit(1);                                                       \
    }                                                                \
  } while (0)

// The call succeeds.
#define OK(call)                                                                         \
  do {                                                                                   \
    const int rc_ = (call);                                                              \
    CHECK(rc_ >= 0, "%s returned %d: %s, way %d", #call, rc_, dsm_error_message(), way); \
  } while (0)

// The call fails with this code, and its message contains some words.
#define FAILS(code, words, call)                                                          \
  do {                                                                                    \
    const int rc_ = (call);                                                               \
    CHECK(rc_ == (code), "%s returned %d instead of %s, way %d", #call, rc_, #code, way); \
    CHECK(strstr(dsm_error_message(), words) != NULL, "%s: no '%s' in: %s", #call, words, \
          dsm_error_message());                                                           \
  } while (0)

static inline void begin(size_t size) {
  OK(dsm_open(&(dsm_options){.size = size, .way = way}, &memory));
  task = dsm_task(memory);
  tasks = dsm_tasks(memory);
}

static inline void end(void) { OK(dsm_close(memory)); }

static inline unsigned char pattern(size_t at, int seed) {
  return (unsigned char)(at * 7 + (size_t)seed * 13 + at / 251);
}
