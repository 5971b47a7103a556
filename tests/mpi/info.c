/* Hints: those in effect are returned, unknown ones are not, bad values change nothing, and the
 * environment takes precedence over the program.
 *
 * RANKS: 1 2
 * ENV: SHIMA_HINTS=cb_nodes=3 SHIMA_LOG=error
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"

static void expect_hint(MPI_File fh, const char* key, const char* expected) {
  MPI_Info info;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int found = 0;
  EXPECT_OK(MPI_File_get_info(fh, &info));
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  MPI_Info_free(&info);
  if (found != (expected != NULL) || (found && strcmp(value, expected) != 0)) {
    fprintf(stderr, "hint %s is %s, not %s\n", key, found ? value : "unset",
            expected ? expected : "unset");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

int main(int argc, char** argv) {
  MPI_File fh;
  MPI_Info info;
  struct stat status;
  start_test(&argc, &argv, 100);
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_nodes", "2");
  MPI_Info_set(info, "cb_buffer_size", "1048576");
  MPI_Info_set(info, "romio_cb_write", "sometimes");
  MPI_Info_set(info, "no_such_hint", "1");
  MPI_Info_set(info, "file_perm", "0640");
  umask(0);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "info.out",
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &fh));
  MPI_Info_free(&info);
  expect_hint(fh, "cb_nodes", "3");
  expect_hint(fh, "cb_buffer_size", "1048576");
  expect_hint(fh, "romio_cb_write", "automatic");
  expect_hint(fh, "romio_ds_write", "disable");
  expect_hint(fh, "no_such_hint", NULL);
  expect_hint(fh, "file_perm", "0640");
  EXPECT_EQ(stat("info.out", &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640);

  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_read", "disable");
  EXPECT_OK(MPI_File_set_info(fh, info));
  expect_hint(fh, "romio_cb_read", "disable");
  expect_hint(fh, "cb_buffer_size", "1048576");
  MPI_Info_set(info, "romio_cb_read", "enable");
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", info));
  expect_hint(fh, "romio_cb_read", "enable");
  EXPECT_OK(MPI_File_set_info(fh, MPI_INFO_NULL));
  MPI_Info_free(&info);
  EXPECT_OK(MPI_File_close(&fh));

  // For a hint that was not given, the value is Shima's choice, not "automatic". A rank alone has a
  // core.
  char own[40];
  snprintf(own, sizeof own, "chosen.%d.out", here);
  EXPECT_OK(MPI_File_open(MPI_COMM_SELF, own,
                          MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                          &fh));
  expect_hint(fh, "ind_rd_buffer_size", "1048576");
  expect_hint(fh, "cb_buffer_size", "524288");
  EXPECT_OK(MPI_File_close(&fh));
  return end_test();
}
