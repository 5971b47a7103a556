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
/* Blocks of the memory type: so many that its description is a long message. */
enum { BLOCKS_A_ROW = 32, BLOCKS = BLOCKS_A_ROW * ROWS, GAP = sizeof(int) };

static int rank, size, victim;
static const char *path, *plain_path;
static char striped_path[4096], temporary[4096];
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
static int swapped; /* the file holds integers in external32 */
static int striped;
static MPI_File file = MPI_FILE_NULL;
static MPI_Datatype filetype = MPI_DATATYPE_NULL, memory_type = MPI_DATATYPE_NULL;
static unsigned char* buffer;

static long row_bytes(void) { return (long)piece * (size + 1); }
static long file_bytes(void) { return row_bytes() * ROWS; }
static long my_bytes(void) { return (long)piece * ROWS; }
static long place_of(long i) { return i / piece * row_bytes() + (long)rank * piece + i % piece; }

/* The first byte of a block in its row, and the place of a data byte in the buffer, where a gap
 * follows each block. */
static long block_start(long row, long block) {
  if (block == 0 || block == BLOCKS_A_ROW) return block / BLOCKS_A_ROW * piece;
  return piece * block / BLOCKS_A_ROW / 4 * 4 + (row + block) % 2 * 4;
}
static long* buffer_places;
static long buffer_bytes(void) { return my_bytes() + BLOCKS * GAP; }

/* A striped file is filled and read through Shima, without failures. */
static int move_whole_file(unsigned char* all, int write) {
  MPI_File whole;
  MPI_Status status;
  int n = 0;
  if (!striped) {
    const int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (write && ftruncate(fd, file_bytes()) != 0) abort();
    n = (int)(write ? pwrite(fd, all, (size_t)file_bytes(), 0)
                    : pread(fd, all, (size_t)file_bytes(), 0));
    close(fd);
    return n;
  }
  if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &whole) != MPI_SUCCESS)
    return -1;
  if (write)
    MPI_File_write_at(whole, 0, all, (int)file_bytes(), MPI_BYTE, &status);
  else
    MPI_File_read_at(whole, 0, all, (int)file_bytes(), MPI_BYTE, &status);
  if (write) MPI_File_set_size(whole, file_bytes());
  MPI_Get_count(&status, MPI_BYTE, &n);
  MPI_File_close(&whole);
  return n;
}

static void put_old(void) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  for (long i = 0; i < file_bytes(); ++i) all[i] = old_byte(i);
  if (move_whole_file(all, 1) != file_bytes()) abort();
  free(all);
}

static void check_file(int succeeded, int writes) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  const int n = move_whole_file(all, 0);
  if (n != file_bytes()) complain("the file is shorter");
  for (long i = 0; i < n; ++i) {
    const int asked = writes && i % row_bytes() < (long)piece * size;
    if (all[i] == old_byte(i) && !(asked && succeeded)) continue;
    if (all[i] == new_byte(i) && asked) continue;
    complain(asked ? "a byte is wrong although all ranks succeeded"
                   : "a byte that no rank wrote has changed");
    break;
  }
  free(all);
}

static void fill_buffer(int writes) {
  memset(buffer, 0xa5, (size_t)buffer_bytes() + 2 * GUARD);
  if (writes)
    for (long i = 0; i < my_bytes(); ++i) buffer[GUARD + buffer_places[i]] = new_byte(place_of(i));
}

static void check_buffer(int succeeded) {
  for (long i = 0; i < my_bytes(); ++i) {
    unsigned char* const byte = &buffer[GUARD + buffer_places[i]];
    if (succeeded && *byte != old_byte(place_of(i)))
      return complain("a byte was read wrong although the read succeeded");
    *byte = 0xa5;
  }
  for (long i = 0; i < buffer_bytes() + 2 * GUARD; ++i)
    if (buffer[i] != 0xa5) return complain("memory outside the request has changed");
}

static MPI_Datatype make_filetype(MPI_Datatype etype, int etype_bytes) {
  MPI_Datatype row, type;
  const MPI_Aint start = (MPI_Aint)rank * piece;
  MPI_Type_create_hindexed_block(1, piece / etype_bytes, &start, etype, &row);
  MPI_Type_create_resized(row, 0, row_bytes(), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&row);
  return type;
}

static MPI_Datatype make_memory_type(MPI_Datatype etype, int etype_bytes) {
  static int lens[BLOCKS];
  static MPI_Aint places[BLOCKS];
  MPI_Datatype type;
  long at = 0;
  for (int i = 0; i < BLOCKS; ++i) {
    const long row = i / BLOCKS_A_ROW, block = i % BLOCKS_A_ROW;
    const long start = block_start(row, block), bytes = block_start(row, block + 1) - start;
    lens[i] = (int)bytes / etype_bytes;
    places[i] = at;
    for (long k = 0; k < bytes; ++k)
      buffer_places[row * piece + start + k] = at + (swapped ? k ^ 3 : k);
    at += bytes + GAP;
  }
  MPI_Type_create_hindexed(BLOCKS, lens, places, etype, &type);
  MPI_Type_commit(&type);
  return type;
}

static void make_types(void) {
  const MPI_Datatype etype = swapped ? MPI_INT : MPI_BYTE;
  const int etype_bytes = swapped ? sizeof(int) : 1;
  if (filetype != MPI_DATATYPE_NULL) {
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory_type);
  }
  free(buffer_places);
  free(buffer);
  buffer_places = malloc((size_t)my_bytes() * sizeof *buffer_places);
  buffer = malloc((size_t)buffer_bytes() + 2 * GUARD);
  filetype = make_filetype(etype, etype_bytes);
  memory_type = make_memory_type(etype, etype_bytes);
}
