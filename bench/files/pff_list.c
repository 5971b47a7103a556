// pff_list: one pff.h call with many requests against one system call per request.
//
//   pff_list list PATH REQUESTS BYTES SPREAD     random requests, SPREAD times as many places
//   pff_list once PATH REQUESTS BYTES SPREAD METHOD    one read, for counting system calls
//   pff_list build REQUESTS                      the cost of building and parsing a request
//
// The data stays in the page cache, so that the calls are compared; both ways move the same bytes
// in the same order of requests, and the bytes read are compared. Prints a JSON object per figure.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shima/pff.h"

enum { rounds = 3 };

struct job {
  const char* path;
  size_t requests, bytes;
  pff_piece* pieces;
  char* memory;
};

static double clock_s(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double now(void) { return clock_s(CLOCK_MONOTONIC); }
static double cpu(void) { return clock_s(CLOCK_PROCESS_CPUTIME_ID); }

static void die(const char* what) {
  fprintf(stderr, "pff_list: %s: %s\n", what, pff_error_message());
  exit(1);
}

static uint64_t draw(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

// Different places, in random order.
static void draw_pieces(struct job* job, size_t spread) {
  size_t places = job->requests * spread;
  uint32_t* order = malloc(places * sizeof *order);
  uint64_t state = 88172645463325252u;
  if (!order) die("memory");
  for (size_t i = 0; i < places; i++) order[i] = (uint32_t)i;
  for (size_t i = 0; i < job->requests; i++) {
    size_t other = i + draw(&state) % (places - i);
    uint32_t place = order[other];
    order[other] = order[i];
    order[i] = place;
    job->pieces[i] = (pff_piece){(int64_t)place * (int64_t)job->bytes, job->bytes};
  }
  free(order);
}

static void loop(const struct job* job, int write) {
  int fd = open(job->path, O_RDWR);
  for (size_t i = 0; i < job->requests; i++) {
    char* at = job->memory + i * job->bytes;
    off_t offset = (off_t)job->pieces[i].offset;
    ssize_t n = write ? pwrite(fd, at, job->bytes, offset) : pread(fd, at, job->bytes, offset);
    if (n != (ssize_t)job->bytes) die("pread or pwrite");
  }
  close(fd);
}

static void list(const struct job* job, int write, const char* hints) {
  pff_file* file;
  if (pff_open(job->path, PFF_READ | PFF_WRITE, NULL, hints, &file)) die("open");
  pff_where where = pff_list(job->pieces, job->requests);
  int64_t n = write ? pff_write(file, where, job->memory) : pff_read(file, where, job->memory);
  if (n != (int64_t)(job->requests * job->bytes)) die("list");
  if (pff_close(file)) die("close");
}

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const struct job* job, const char* method, int write, const char* hints) {
  double ns[rounds], cpu_ns[rounds];
  for (int i = 0; i < rounds; i++) {
    double started = now(), cpu_started = cpu();
    if (hints)
      list(job, write, hints);
    else
      loop(job, write);
    ns[i] = (now() - started) * 1e9 / (double)job->requests;
    cpu_ns[i] = (cpu() - cpu_started) * 1e9 / (double)job->requests;
  }
  qsort(ns, rounds, sizeof *ns, by_value);
  qsort(cpu_ns, rounds, sizeof *cpu_ns, by_value);
  printf(
      "{\"program\":\"pff_list\",\"method\":\"%s\",\"op\":\"%s\",\"ns_per_piece\":%.1f,"
      "\"cpu_ns_per_piece\":%.1f}\n",
      method, write ? "write" : "read", ns[rounds / 2], cpu_ns[rounds / 2]);
}

static void check_read(const struct job* job) {
  size_t len = job->requests * job->bytes;
  char* wanted = malloc(len);
  if (!wanted) die("memory");
  memset(job->memory, 0, len);
  loop(job, 0);
  memcpy(wanted, job->memory, len);
  memset(job->memory, 0, len);
  list(job, 0, "");
  if (memcmp(wanted, job->memory, len) != 0) {
    fprintf(stderr, "pff_list: WRONG DATA\n");
    exit(1);
  }
  free(wanted);
}

static void make_file(struct job* job, size_t spread) {
  job->pieces = malloc(job->requests * sizeof *job->pieces);
  size_t len = job->requests * job->bytes;
  if (!job->pieces || posix_memalign((void**)&job->memory, 4096, len)) die("memory");
  draw_pieces(job, spread);
  int fd = open(job->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  memset(job->memory, 'x', len);
  for (size_t i = 0; i < spread; i++)  // allocates every page of the file
    if (pwrite(fd, job->memory, len, (off_t)(i * len)) != (ssize_t)len) die("pwrite");
  for (size_t i = 0; i < len; i++) job->memory[i] = (char)(i * 2654435761u >> 13);
  close(fd);
  loop(job, 1);
}

static void compare(struct job* job, size_t spread) {
  make_file(job, spread);
  check_read(job);
  for (int write = 0; write < 2; write++) {
    measure(job, "loop", write, NULL);
    measure(job, "list", write, "");
    measure(job, "list, ring", write, "shima_ring=enable");
    measure(job, "list, no ring", write, "shima_ring=disable");
    measure(job, "loop", write, NULL);
  }
}

// The cost of a request that moves no data: its memory is refused after the request was parsed.
static void build(const char* form, size_t requests) {
  pff_file* file;
  char path[] = "/tmp/pff_list.XXXXXX", byte = 0;
  close(mkstemp(path));
  if (pff_open(path, PFF_READ | PFF_WRITE, NULL, NULL, &file)) die("open");
  double started = now();
  pff_where where = pff_stride(0, 4096, 12288, (uint64_t)requests * 4096);
  pff_piece* pieces = NULL;
  if (form[0] == 'l') {
    pieces = malloc(requests * sizeof *pieces);
    for (size_t i = 0; i < requests; i++)
      pieces[i] = (pff_piece){(int64_t)(i * 12288 + i % 2 * 4096), 4096};
    where = pff_list(pieces, requests);
  }
  if (pff_write_from(file, where, &byte, pff_span(0, 1)) != PFF_ERR_ARGUMENT) die("build");
  double ns = (now() - started) * 1e9;
  free(pieces);
  pff_close(file);
  unlink(path);
  printf(
      "{\"program\":\"pff_list\",\"method\":\"%s\",\"op\":\"build\",\"ns\":%.0f,"
      "\"ns_per_piece\":%.3f}\n",
      form, ns, ns / (double)requests);
}

int main(int argc, char** argv) {
  if (argc >= 6) {
    struct job job = {argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10), NULL, NULL};
    size_t spread = strtoul(argv[5], NULL, 10);
    if (argc == 6 && !strcmp(argv[1], "list")) {
      compare(&job, spread);
      return 0;
    }
    if (argc == 7 && !strcmp(argv[1], "once")) {
      make_file(&job, spread);
      if (!strcmp(argv[6], "loop"))
        loop(&job, 0);
      else
        list(&job, 0, strcmp(argv[6], "list") ? "shima_ring=disable" : "");
      return 0;
    }
  }
  if (argc == 3 && !strcmp(argv[1], "build")) {
    size_t requests = strtoul(argv[2], NULL, 10);
    for (int i = 0; i < 2; i++) {  // the first of each warms up
      build("stride", requests);
      build("list", requests);
    }
    return 0;
  }
  fputs("usage: pff_list list PATH REQUESTS BYTES SPREAD | pff_list build REQUESTS\n", stderr);
  return 2;
}
