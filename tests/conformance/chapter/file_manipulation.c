/* MPI-4.1, sections 14.2.1 to 14.2.7: opening (every access mode), closing, deleting, resizing,
 * preallocating, and queries. Sizes and contents are checked with POSIX calls.
 *
 * RANKS: 1 2 4
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

static char own[40]; /* a name that only this rank uses */

static int exists(const char* name) { return access(name, F_OK) == 0; }

static void make_file(const char* name, const char* text) {
  FILE* file = fopen(name, "w");
  EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int expected_class(int amode, int there) {
  const int r = (amode & MPI_MODE_RDONLY) != 0, w = (amode & MPI_MODE_WRONLY) != 0,
            rw = (amode & MPI_MODE_RDWR) != 0;
  if (r + w + rw != 1) return MPI_ERR_AMODE;
  if (r && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) return MPI_ERR_AMODE;
  if (rw && (amode & MPI_MODE_SEQUENTIAL)) return MPI_ERR_AMODE;
  if (there) return amode & MPI_MODE_EXCL ? MPI_ERR_FILE_EXISTS : MPI_SUCCESS;
  return amode & MPI_MODE_CREATE ? MPI_SUCCESS : MPI_ERR_NO_SUCH_FILE;
}

/* Checks an open file of this mode; its five bytes stay, whatever the mode. */
static void check_opened(MPI_File fh, int amode, int size) {
  int got = 0;
  MPI_Group group;
  EXPECT_OK(MPI_File_get_amode(fh, &got));
  EXPECT_EQ(got, amode);
  EXPECT_EQ(file_size_of(fh), size);
  if (!(amode & MPI_MODE_SEQUENTIAL)) {
    EXPECT_EQ(position_of(fh), amode & MPI_MODE_APPEND ? size : 0);
    EXPECT_EQ(shared_position_of(fh), amode & MPI_MODE_APPEND ? size : 0);
  }
  EXPECT_OK(MPI_File_get_group(fh, &group));
  MPI_Group_free(&group);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT(fh == MPI_FILE_NULL);
  EXPECT_EQ(exists(own), (amode & MPI_MODE_DELETE_ON_CLOSE) == 0);
  if (exists(own)) expect_stored(own, 0, "bytes", (size_t)size);
}

/* 14.2.1: each of the 512 access modes, with a file and without. */
static void every_access_mode(void) {
  const int bits[9] = {MPI_MODE_RDONLY, MPI_MODE_RDWR,       MPI_MODE_WRONLY,
                       MPI_MODE_CREATE, MPI_MODE_EXCL,       MPI_MODE_DELETE_ON_CLOSE,
                       MPI_MODE_APPEND, MPI_MODE_SEQUENTIAL, MPI_MODE_UNIQUE_OPEN};
  for (int choice = 0; choice < 1024; ++choice) {
    const int there = choice >= 512;
    int amode = 0;
    MPI_File fh;
    for (int b = 0; b < 9; ++b) amode |= choice >> b & 1 ? bits[b] : 0;
    /* MPI_MODE_EXCL is defined only with MPI_MODE_CREATE. */
    if ((amode & MPI_MODE_EXCL) && !(amode & MPI_MODE_CREATE)) continue;
    unlink(own);
    if (there) make_file(own, "bytes");
    const int code = MPI_File_open(MPI_COMM_SELF, own, amode, MPI_INFO_NULL, &fh);
    EXPECT_EQ(class_of(code), expected_class(amode, there));
    if (code == MPI_SUCCESS) check_opened(fh, amode, there ? 5 : 0);
  }
  unlink(own);
}

/* 14.2.1: all ranks pass the same mode and the same file; MPI_MODE_EXCL creates it once. */
static void open_is_collective(void) {
  MPI_File fh;
  MPI_Comm comm;
  if (ranks > 1)
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, "none.out",
                               MPI_MODE_RDWR | (here ? MPI_MODE_CREATE : 0), MPI_INFO_NULL, &fh),
                 MPI_ERR_NOT_SAME);
  fh = open_world("excl.out", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, "excl.out",
                             MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh),
               MPI_ERR_FILE_EXISTS);
  /* Names may differ if they mean one file; the communicator may be freed. */
  MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - here, &comm);
  EXPECT_OK(MPI_File_open(comm, here % 2 ? "excl.out" : "./excl.out",
                          MPI_MODE_RDWR | MPI_MODE_UNIQUE_OPEN, MPI_INFO_NULL, &fh));
  MPI_Comm_free(&comm);
  EXPECT_OK(MPI_File_write_ordered(fh, &here, 1, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
  for (int i = 0; i < ranks; ++i) {
    const int backwards = ranks - 1 - i;
    expect_stored("excl.out", i * (long long)sizeof(int), &backwards, sizeof(int));
  }
}

/* 14.2.1 and 14.2.3: names that cannot be opened, and communicators that cannot open. */
static void bad_names(void) {
  static char long_name[6000];
  MPI_File fh;
  memset(long_name, 'x', sizeof long_name - 1);
  EXPECT_CLASS(
      MPI_File_open(MPI_COMM_WORLD, long_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh),
      MPI_ERR_BAD_FILE);
  EXPECT_CLASS(MPI_File_delete(long_name, MPI_INFO_NULL), MPI_ERR_BAD_FILE);
  EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, "no/where", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh),
               MPI_ERR_NO_SUCH_FILE);
  EXPECT_CLASS(MPI_File_open(MPI_COMM_NULL, own, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh),
               MPI_ERR_COMM);
  EXPECT_CLASS(MPI_File_delete(own, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  make_file(own, "");
  EXPECT_OK(MPI_File_delete(own, MPI_INFO_NULL));
  EXPECT(!exists(own));
}

/* 14.2.2: MPI_MODE_DELETE_ON_CLOSE removes the name when the last rank has closed. */
static void delete_on_close(void) {
  MPI_File fh = open_world("gone.out", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(exists("gone.out"));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT(fh == MPI_FILE_NULL);
  EXPECT(!exists("gone.out"));
}

/* 14.2.2: it removes the file that was opened, whatever the working directory at the close. */
static void delete_on_close_from_elsewhere(void) {
  char before[4096];
  EXPECT(getcwd(before, sizeof before) != NULL);
  MPI_File fh = open_self(own, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
  EXPECT_EQ(chdir("/"), 0);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_EQ(chdir(before), 0);
  EXPECT(!exists(own));
}

/* 14.2.4: set_size counts bytes in every view, keeps the bytes before and moves no pointer. */
static void set_size_cuts_and_grows(void) {
  MPI_File fh = open_fresh("size.out");
  EXPECT_OK(MPI_File_write_ordered(fh, "abcdefgh", here == 0 ? 8 : 0, MPI_CHAR, MPI_STATUS_IGNORE));
  view_native(fh, 4, MPI_INT, MPI_INT);
  EXPECT_OK(MPI_File_seek(fh, 5, MPI_SEEK_SET));
  EXPECT_OK(MPI_File_seek_shared(fh, 6, MPI_SEEK_SET));
  const MPI_Offset sizes[] = {3, 1000, 5000000000, 2, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(MPI_File_set_size(fh, sizes[i]));
    EXPECT_EQ(file_size_of(fh), sizes[i]);
    if (i < 4) expect_stored("size.out", 0, "ab", 2);
    EXPECT_EQ(position_of(fh), 5);
    EXPECT_EQ(shared_position_of(fh), 6);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (ranks > 1) EXPECT_CLASS(MPI_File_set_size(fh, here), MPI_ERR_NOT_SAME);
  EXPECT_CLASS(MPI_File_set_size(fh, -1), MPI_ERR_ARG);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.2.5: preallocate never shortens, keeps written bytes, and sets at least the given size. */
static void preallocate_only_grows(void) {
  struct stat facts;
  MPI_File fh = open_fresh("room.out");
  EXPECT_OK(MPI_File_write_ordered(fh, "abcdefgh", here == 0 ? 8 : 0, MPI_CHAR, MPI_STATUS_IGNORE));
  const MPI_Offset sizes[] = {0, 4, 8, 100000, 50}, expected[] = {8, 8, 8, 100000, 100000};
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(MPI_File_preallocate(fh, sizes[i]));
    EXPECT_EQ(file_size_of(fh), expected[i]);
    expect_stored("room.out", 0, "abcdefgh", 8);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_EQ(stat("room.out", &facts), 0);
  EXPECT(facts.st_blocks * 512 >= 100000);
  EXPECT_EQ(position_of(fh), 0);
  if (ranks > 1) EXPECT_CLASS(MPI_File_preallocate(fh, 10 + here), MPI_ERR_NOT_SAME);
  EXPECT_OK(MPI_File_close(&fh));
}

/* 14.2.4, 14.2.5: errors on read-only and on sequential files. */
static void resizing_needs_the_right_mode(void) {
  make_file(own, "bytes");
  MPI_File fh = open_self(own, MPI_MODE_RDONLY);
  EXPECT_CLASS(MPI_File_set_size(fh, 1), MPI_ERR_READ_ONLY);
  EXPECT_CLASS(MPI_File_preallocate(fh, 10), MPI_ERR_READ_ONLY);
  EXPECT_OK(MPI_File_close(&fh));
  fh = open_self(own, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  EXPECT(MPI_File_set_size(fh, 1) != MPI_SUCCESS);
  EXPECT(MPI_File_preallocate(fh, 10) != MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
  expect_stored(own, 0, "bytes", 5);
}

/* 14.2.7: get_group returns a new group of the communicator each time, which the caller frees. */
static void groups_are_new(void) {
  MPI_Comm half;
  MPI_File fh;
  MPI_Group first, second, expected;
  int same = MPI_UNEQUAL;
  MPI_Comm_split(MPI_COMM_WORLD, here % 2, -here, &half);
  EXPECT_OK(MPI_File_open(half, here % 2 ? "odd.out" : "even.out", MPI_MODE_CREATE | MPI_MODE_RDWR,
                          MPI_INFO_NULL, &fh));
  MPI_Comm_group(half, &expected);
  MPI_Comm_free(&half);
  for (int i = 0; i < 50; ++i) {
    EXPECT_OK(MPI_File_get_group(fh, &first));
    EXPECT_OK(MPI_File_get_group(fh, &second));
    MPI_Group_free(&first);
    MPI_Group_compare(second, expected, &same);
    EXPECT_EQ(same, MPI_IDENT);
    MPI_Group_free(&second);
  }
  MPI_Group_free(&expected);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  snprintf(own, sizeof own, "own.%d.out", here);
  every_access_mode();
  open_is_collective();
  bad_names();
  delete_on_close();
  delete_on_close_from_elsewhere();
  set_size_cuts_and_grows();
  preallocate_only_grows();
  resizing_needs_the_right_mode();
  groups_are_new();
  return end_test();
}
