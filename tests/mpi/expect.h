// Checks that print both values, and checks of error classes.
#ifndef SHIMA_TESTS_EXPECT_H
#define SHIMA_TESTS_EXPECT_H

#include "mpi_check.h"

#define EXPECT(condition) REQUIRE(condition)

#define EXPECT_EQ(actual, expected) \
  expect_equal((long long)(actual), (long long)(expected), #actual, __LINE__)

// Makes a call and checks the class of the error that it returns.
#define EXPECT_CLASS(call, expected) EXPECT_EQ(class_of(call), expected)
#define EXPECT_OK(call)              CHECK(call)

static inline void expect_equal(long long actual, long long expected, const char* what, int line) {
  char text[400];
  if (actual == expected) return;
  snprintf(text, sizeof text, "%.300s is %lld, not %lld", what, actual, expected);
  give_up(text, line);
}

// Helpers for programs of many small cases.

static inline MPI_File open_world(const char* name, int amode) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &fh));
  return fh;
}

static inline MPI_File open_self(const char* name, int amode) {
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_SELF, name, amode, MPI_INFO_NULL, &fh));
  return fh;
}

// A new, empty file for all ranks.
static inline MPI_File open_fresh(const char* name) {
  MPI_File fh = open_world(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  EXPECT_OK(MPI_File_set_size(fh, 0));
  return fh;
}

static inline void view_native(MPI_File fh, MPI_Offset at, MPI_Datatype etype,
                               MPI_Datatype filetype) {
  EXPECT_OK(MPI_File_set_view(fh, at, etype, filetype, "native", MPI_INFO_NULL));
}

// Makes the writes of all ranks visible to all ranks (MPI-4.1, section 14.6.1).
static inline void sync_barrier_sync(MPI_File fh) {
  EXPECT_OK(MPI_File_sync(fh));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_sync(fh));
}

#define expect_items(status, type, expected) \
  expect_equal(items_in(status, type), expected, "the count of " #status, __LINE__)

static inline int items_in(const MPI_Status* status, MPI_Datatype type) {
  int count = -1;
  MPI_Get_count((MPI_Status*)status, type, &count);
  return count;
}

static inline MPI_Offset position_of(MPI_File fh) {
  MPI_Offset position = -1;
  EXPECT_OK(MPI_File_get_position(fh, &position));
  return position;
}

static inline MPI_Offset shared_position_of(MPI_File fh) {
  MPI_Offset position = -1;
  EXPECT_OK(MPI_File_get_position_shared(fh, &position));
  return position;
}

static inline MPI_Offset file_size_of(MPI_File fh) {
  MPI_Offset size = -1;
  EXPECT_OK(MPI_File_get_size(fh, &size));
  return size;
}

// Checks the bytes that another program finds in the file at `offset`.
static inline void expect_stored(const char* name, long long offset, const void* expected,
                                 size_t len) {
  unsigned char* found = malloc(len + 1);
  EXPECT_EQ(stored_read(name, found, (long long)len, offset), len);
  for (size_t i = 0; i < len; ++i) EXPECT_EQ(found[i], ((const unsigned char*)expected)[i]);
  free(found);
}

#endif
