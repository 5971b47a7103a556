/* The job and the file of inject_calls.c: its ranks and their meetings, the expected contents of
 * the file, and the report of a problem. */
#pragma once

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 24, MOST_RANKS = 8, GUARD = 64 };

static int rank, size, victim;
static const char* path;
static char temporary[4096];
static const char* doing = "starting";
static const char* kind = "";
static long site_number = -1;
static int strict;
static int failures;

static int (*inject_begin)(void);
static int (*inject_end)(void);
static uint64_t (*inject_site)(int, const char**, int*);
static void (*inject_arm)(uint64_t, int, int);
static int (*inject_disarm)(void);
static void (*inject_where)(char*, size_t);

static void say_where(const char* what) {
  char where[1024];
  inject_where(where, sizeof where);
  fprintf(stderr, "rank %d: %s: %s, site %ld (%s)%s, victim %d\n    %s\n", rank, what, doing,
          site_number, kind, strict ? " and all memory after it" : "", victim, where);
}

static void complain(const char* what) {
  ++failures;
  say_where(what);
}

/* Meetings that yield the cores to other processes. */
static void finish(MPI_Request* request) {
  int done = 0;
  while (!done) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done) usleep(50);
  }
}
static void gather(int mine, int* all) {
  MPI_Request request;
  MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
  finish(&request);
}
static void meet(void) {
  int all[MOST_RANKS];
  gather(0, all);
}
static uint64_t from_victim(uint64_t mine) {
  MPI_Request request;
  MPI_Ibcast(&mine, 1, MPI_UINT64_T, victim, MPI_COMM_WORLD, &request);
  finish(&request);
  return mine;
}

/* The file: rows of one piece per rank, and one piece that belongs to no rank. */
static unsigned char old_byte(long at) { return (unsigned char)(at * 7 + 3); }
static unsigned char new_byte(long at) { return (unsigned char)~old_byte(at); }

static int piece;
static MPI_File file = MPI_FILE_NULL;
static MPI_Datatype filetype = MPI_DATATYPE_NULL, memory_type = MPI_DATATYPE_NULL;
static unsigned char* buffer;

static long row_bytes(void) { return (long)piece * (size + 1); }
static long file_bytes(void) { return row_bytes() * ROWS; }
static long my_bytes(void) { return (long)piece * ROWS; }
static long place_of(long i) { return i / piece * row_bytes() + (long)rank * piece + i % piece; }

static void put_old(void) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  for (long i = 0; i < file_bytes(); ++i) all[i] = old_byte(i);
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (ftruncate(fd, file_bytes()) != 0 || pwrite(fd, all, (size_t)file_bytes(), 0) != file_bytes())
    abort();
  close(fd);
  free(all);
}

static void check_file(int succeeded, int writes) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  const int fd = open(path, O_RDONLY);
  const ssize_t n = pread(fd, all, (size_t)file_bytes(), 0);
  if (n != file_bytes()) complain("the file is shorter");
  for (long i = 0; i < n; ++i) {
    const int asked = writes && i % row_bytes() < (long)piece * size;
    if (all[i] == old_byte(i) && !(asked && succeeded)) continue;
    if (all[i] == new_byte(i) && asked) continue;
    complain(asked ? "a byte is wrong although all ranks succeeded"
                   : "a byte that no rank wrote has changed");
    break;
  }
  close(fd);
  free(all);
}

static void fill_buffer(int writes) {
  memset(buffer, 0xa5, (size_t)my_bytes() + 2 * GUARD);
  if (writes)
    for (long i = 0; i < my_bytes(); ++i) buffer[GUARD + i] = new_byte(place_of(i));
}

static void check_buffer(int succeeded) {
  for (int i = 0; i < GUARD; ++i)
    if (buffer[i] != 0xa5 || buffer[GUARD + my_bytes() + i] != 0xa5)
      return complain("memory around the buffer has changed");
  for (long i = 0; succeeded && i < my_bytes(); ++i)
    if (buffer[GUARD + i] != old_byte(place_of(i)))
      return complain("a byte was read wrong although the read succeeded");
}

static void make_types(void) {
  if (filetype != MPI_DATATYPE_NULL) {
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory_type);
  }
  MPI_Datatype rows, bytes;
  const int starts[3] = {rank * piece, 0, 0};
  MPI_Type_contiguous(piece, MPI_BYTE, &bytes);
  MPI_Type_create_hindexed_block(1, piece, (MPI_Aint[]){starts[0]}, MPI_BYTE, &rows);
  MPI_Type_create_resized(rows, 0, row_bytes(), &filetype);
  MPI_Type_commit(&filetype);
  /* In many unequal blocks, so that its description is a long message. */
  int lens[4 * ROWS], count = 0;
  MPI_Aint places[4 * ROWS];
  long at = 0;
  for (int i = 0; i < ROWS; ++i) {
    const int cuts[5] = {0, 100 + 3 * i, 200 + 5 * i, 330 + 7 * i, piece};
    for (int k = 0; k < 4; ++k) {
      lens[count] = cuts[k + 1] - cuts[k];
      places[count++] = at + cuts[k];
    }
    at += piece;
  }
  MPI_Type_create_hindexed(count, lens, places, MPI_BYTE, &memory_type);
  MPI_Type_commit(&memory_type);
  MPI_Type_free(&rows);
  MPI_Type_free(&bytes);
  free(buffer);
  buffer = malloc((size_t)my_bytes() + 2 * GUARD);
}
