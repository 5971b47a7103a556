// Checks for LAPI programs: each failure names the task, the call and the values.
#pragma once

#include <lapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__cplusplus)
extern "C" {
#endif

static lapi_handle_t hndl;
static int task_id, num_tasks;

#define CHECK(condition, ...)                                           \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "%s:%d: task %d: ", __FILE__, __LINE__, task_id); \
      fprintf(stderr, __VA_ARGS__);                                     \
      fprintf(stderr, " (%s)\n", #condition);                           \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

// The call succeeds.
#define OK(call)                                                         \
  do {                                                                   \
    const int rc_ = (call);                                              \
    char text_[LAPI_MAX_ERR_STRING];                                     \
    LAPI_Msg_string(rc_, text_);                                         \
    CHECK(rc_ == LAPI_SUCCESS, "%s returned %d: %s", #call, rc_, text_); \
  } while (0)

// The call fails with this code, and its text contains some words.
#define FAILS(code, words, call)                                                        \
  do {                                                                                  \
    const int rc_ = (call);                                                             \
    char text_[LAPI_MAX_ERR_STRING];                                                    \
    LAPI_Msg_string(rc_, text_);                                                        \
    CHECK(rc_ == (code), "%s returned %d instead of %s: %s", #call, rc_, #code, text_); \
    CHECK(strstr(text_, words) != NULL, "%s: no '%s' in: %s", #call, words, text_);     \
  } while (0)

static inline void begin_with(LAPI_err_hndlr* on_error, int threads) {
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  info.err_hndlr = on_error;
  info.num_compl_hndlr_thr = threads;
  OK(LAPI_Init(&hndl, &info));
  OK(LAPI_Qenv(hndl, TASK_ID, &task_id));
  OK(LAPI_Qenv(hndl, NUM_TASKS, &num_tasks));
}

static inline void begin(void) { begin_with(NULL, 0); }

static inline void end(void) {
  OK(LAPI_Gfence(hndl));
  OK(LAPI_Term(hndl));
}

static inline unsigned char pattern(size_t at, int seed) {
  return (unsigned char)(at * 7 + (size_t)seed * 13 + at / 251);
}

static inline void fill(unsigned char* bytes, size_t len, int seed) {
  for (size_t i = 0; i < len; ++i) bytes[i] = pattern(i, seed);
}

static inline void check_filled(const unsigned char* bytes, size_t len, int seed,
                                const char* what) {
  for (size_t i = 0; i < len; ++i)
    CHECK(bytes[i] == pattern(i, seed), "%s: byte %zu of %zu is %d instead of %d", what, i, len,
          bytes[i], pattern(i, seed));
}

#if defined(__cplusplus)
}
#endif
