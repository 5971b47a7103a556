// dsm_calls: READ, WRITE and WRITE_B of dsm.h by one way, or plain copies through memory that two
// processes map.
//
//   shima run --lapi -n 2 dsm_calls WAY     or     dsm_calls copy
#define _GNU_SOURCE
#include <shima/dsm.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cells.h"

static dsm* memory;
static unsigned char* shared;

static void check(int code) {
  if (code >= 0) return;
  fprintf(stderr, "dsm_calls: %s\n", dsm_error_message());
  exit(1);
}

static void by_dsm(enum operation operation, void* data, size_t bytes) {
  switch (operation) {
    case op_read:
      return check(dsm_read(memory, 1, 0, data, bytes));
    case op_write:
      return check(dsm_write(memory, 1, 0, data, bytes));
    default:
      return check(dsm_write_b(memory, 1, 0, data, bytes));
  }
}

static void finish(void) { check(dsm_fence(memory)); }

static unsigned long long lost(void) {
  uint64_t bytes = 0;
  check(dsm_lost(memory, &bytes));
  return bytes;
}

static void by_copy(enum operation operation, void* data, size_t bytes) {
  if (operation == op_read)
    memcpy(data, shared, bytes);
  else
    memcpy(shared, data, bytes);
  __asm__ volatile("" : : "r"(shared), "r"(data) : "memory");  // each copy is done
}

static void nothing(void) {}

static int copy(void) {
  shared = mmap(NULL, most_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  pid_t other = fork();
  if (other == 0) {
    memset(shared, 1, most_bytes);  // the other process has touched it
    _exit(0);
  }
  waitpid(other, NULL, 0);
  measure_cells(by_copy, nothing, NULL);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "dsm_calls WAY|copy\n"), 2;
  if (strcmp(argv[1], "copy") == 0) return copy();
  int way = atoi(argv[1]);
  check(dsm_open(&(dsm_options){.size = most_bytes, .way = way}, &memory));
  check(dsm_barrier(memory));
  if (dsm_task(memory) == 0) measure_cells(by_dsm, finish, way == DSM_WAY_UDP ? lost : NULL);
  check(dsm_barrier(memory));
  check(dsm_close(memory));
  return 0;
}
