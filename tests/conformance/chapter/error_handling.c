/* MPI-4.1, section 14.7 (and 9.3.3 for the calls): error handlers of files. By default errors are
 * returned, whatever the communicator's handler is. MPI_FILE_NULL's handler is for calls without a
 * file and the default for new files; a program's own is called with the handle and the code.
 *
 * RANKS: 1 2 4
 * VARIANTS: striped
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

static int first_calls, second_calls, last_code;
static MPI_File last_file;

static void first_handler(MPI_File* file, int* code, ...) {
  ++first_calls;
  last_file = *file;
  last_code = *code;
}

static void second_handler(MPI_File* file, int* code, ...) {
  ++second_calls;
  last_file = *file;
  last_code = *code;
}

static MPI_Errhandler first, second;

/* Opens a missing file, each rank independently. */
static int fail_to_open(void) {
  MPI_File fh;
  return MPI_File_open(MPI_COMM_SELF, "no.such.file", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh);
}

static int fail_to_seek(MPI_File fh) { return MPI_File_seek(fh, -1, MPI_SEEK_SET); }

static void expect_handler(MPI_File fh, MPI_Errhandler expected) {
  MPI_Errhandler got = MPI_ERRHANDLER_NULL;
  EXPECT_OK(MPI_File_get_errhandler(fh, &got));
  EXPECT(got == expected);
  MPI_Errhandler_free(&got); /* as the standard requires; the file keeps its own reference */
}

/* The default is MPI_ERRORS_RETURN, although that of communicators is MPI_ERRORS_ARE_FATAL. */
static void errors_return_by_default(void) {
  MPI_Errhandler of_world;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
  EXPECT(of_world == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&of_world);
  expect_handler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  MPI_File fh = open_fresh("handlers.out"), null = MPI_FILE_NULL;
  expect_handler(fh, MPI_ERRORS_RETURN);
  EXPECT_CLASS(fail_to_seek(fh), MPI_ERR_ARG);
  EXPECT_CLASS(fail_to_open(), MPI_ERR_NO_SUCH_FILE);
  EXPECT_CLASS(MPI_File_delete("no.such.file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  EXPECT_CLASS(MPI_File_close(&null), MPI_ERR_FILE);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Codes have a class and a text. */
static void codes_can_be_told(void) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0, class = 0;
  const int code = fail_to_open();
  EXPECT(MPI_Error_class(code, &class) == MPI_SUCCESS && class == MPI_ERR_NO_SUCH_FILE);
  EXPECT(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length > 0);
}

/* Each file has its own handler, called once per error with the file and the returned code. */
static void handlers_are_per_file(void) {
  MPI_File one = open_fresh("handlers.out"), two = open_world("handlers.out", MPI_MODE_RDWR);
  EXPECT_OK(MPI_File_set_errhandler(one, first));
  EXPECT_OK(MPI_File_set_errhandler(two, second));
  expect_handler(one, first);
  expect_handler(two, second);
  first_calls = second_calls = 0;
  int code = fail_to_seek(one);
  EXPECT(first_calls == 1 && second_calls == 0 && last_file == one && last_code == code);
  code = fail_to_seek(two);
  EXPECT(first_calls == 1 && second_calls == 1 && last_file == two && last_code == code);
  EXPECT(fail_to_open() != MPI_SUCCESS); /* MPI_FILE_NULL still has its own handler */
  EXPECT(first_calls == 1 && second_calls == 1);
  EXPECT_OK(MPI_File_set_errhandler(one, MPI_ERRORS_RETURN));
  EXPECT(fail_to_seek(one) != MPI_SUCCESS);
  EXPECT_EQ(first_calls, 1);
  EXPECT_OK(MPI_File_close(&one));
  EXPECT_OK(MPI_File_close(&two));
}

/* The handler outlives its handle for as long as a file uses it. */
static void freed_handlers_stay(void) {
  MPI_Errhandler mine;
  MPI_File fh = open_fresh("handlers.out");
  EXPECT_OK(MPI_File_create_errhandler(first_handler, &mine));
  EXPECT_OK(MPI_File_set_errhandler(fh, mine));
  EXPECT_OK(MPI_Errhandler_free(&mine));
  EXPECT(mine == MPI_ERRHANDLER_NULL);
  first_calls = 0;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_CLASS(fail_to_seek(fh), MPI_ERR_ARG);
    EXPECT_EQ(first_calls, i);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

/* MPI_FILE_NULL's handler: for opening and deleting, and inherited when a file is opened. */
static void the_default_is_inherited(void) {
  MPI_File before = open_fresh("handlers.out"), null = MPI_FILE_NULL;
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, first));
  expect_handler(MPI_FILE_NULL, first);
  first_calls = 0;
  EXPECT_CLASS(fail_to_open(), MPI_ERR_NO_SUCH_FILE);
  EXPECT(first_calls == 1 && last_file == MPI_FILE_NULL);
  EXPECT_CLASS(MPI_File_delete("no.such.file", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(first_calls, 2);
  EXPECT_CLASS(MPI_File_close(&null), MPI_ERR_FILE);
  EXPECT_EQ(first_calls, 3);
  EXPECT(fail_to_seek(before) != MPI_SUCCESS);
  EXPECT_EQ(first_calls, 3); /* the default was another handler when the file was opened */
  MPI_File after = open_world("handlers.out", MPI_MODE_RDWR);
  expect_handler(after, first);
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  EXPECT(fail_to_seek(after) != MPI_SUCCESS);
  EXPECT(first_calls == 4 && last_file == after);
  expect_handler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  EXPECT_OK(MPI_File_close(&before));
  EXPECT_OK(MPI_File_close(&after));
}

/* Fatal handlers may be set and queried; they have no effect without an error. */
static void fatal_handlers_can_be_set(void) {
  MPI_File fh = open_fresh("handlers.out");
  EXPECT_OK(MPI_File_set_errhandler(fh, MPI_ERRORS_ARE_FATAL));
  expect_handler(fh, MPI_ERRORS_ARE_FATAL);
#ifdef MPI_ERRORS_ABORT
  EXPECT_OK(MPI_File_set_errhandler(fh, MPI_ERRORS_ABORT));
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40100000
  expect_handler(fh, MPI_ERRORS_ABORT); /* MPICH 4.0 fails an assertion when it counts this one */
#endif
#endif
  EXPECT_OK(MPI_File_set_size(fh, 7));
  EXPECT_OK(MPI_File_close(&fh));
}

/* MPI_File_call_errhandler calls the current handler, with any code, and succeeds. */
static void calling_the_handler(void) {
  int class = 0, code = 0;
  MPI_File fh = open_fresh("handlers.out");
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  EXPECT_OK(MPI_File_call_errhandler(fh, code)); /* MPI_ERRORS_RETURN: no visible effect */
  EXPECT_OK(MPI_File_set_errhandler(fh, first));
  first_calls = 0;
  EXPECT_OK(MPI_File_call_errhandler(fh, code));
  EXPECT(first_calls == 1 && last_code == code && last_file == fh);
  EXPECT_OK(MPI_File_call_errhandler(fh, MPI_ERR_NO_SPACE));
  EXPECT(first_calls == 2 && class_of(last_code) == MPI_ERR_NO_SPACE);
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, second));
  second_calls = 0;
  EXPECT_OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO));
  EXPECT(second_calls == 1 && last_file == MPI_FILE_NULL);
  EXPECT_OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  EXPECT_OK(MPI_File_close(&fh));
}

/* An error of a collective call reaches every rank's own handler, once. */
static void collective_errors(void) {
  int value = 0;
  MPI_Status status;
  MPI_File fh = open_fresh("handlers.out");
  EXPECT_OK(MPI_File_set_errhandler(fh, here % 2 ? second : first));
  first_calls = second_calls = 0;
  EXPECT(MPI_File_write_at_all(fh, here == ranks - 1 ? -1 : 0, &value, 1, MPI_INT, &status) !=
         MPI_SUCCESS);
  EXPECT_EQ(here % 2 ? second_calls : first_calls, 1);
  EXPECT_EQ(first_calls + second_calls, 1);
  EXPECT_OK(MPI_File_write_at_all(fh, here, &value, 1, MPI_INT, &status));
  EXPECT_EQ(first_calls + second_calls, 1);
  EXPECT_OK(MPI_File_close(&fh));
}

static void using_handler(MPI_File* file, int* code, ...) {
  MPI_Offset size = -1;
  EXPECT_OK(MPI_File_get_size(*file, &size));
  EXPECT_OK(MPI_File_set_errhandler(*file, MPI_ERRORS_RETURN));
  EXPECT(fail_to_seek(*file) != MPI_SUCCESS);
  last_code = *code;
}

/* A handler may use the file that it is called for, and even remove itself. */
static void handlers_may_use_the_file(void) {
  MPI_Errhandler mine;
  MPI_File fh = open_fresh("handlers.out");
  EXPECT_OK(MPI_File_create_errhandler(using_handler, &mine));
  EXPECT_OK(MPI_File_set_errhandler(fh, mine));
  MPI_Errhandler_free(&mine);
  last_code = MPI_SUCCESS;
  const int code = fail_to_seek(fh);
  EXPECT(code != MPI_SUCCESS && last_code == code);
  expect_handler(fh, MPI_ERRORS_RETURN);
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  EXPECT_OK(MPI_File_create_errhandler(first_handler, &first));
  EXPECT_OK(MPI_File_create_errhandler(second_handler, &second));
  errors_return_by_default();
  codes_can_be_told();
  handlers_are_per_file();
  freed_handlers_stay();
  the_default_is_inherited();
  fatal_handlers_can_be_set();
  calling_the_handler();
  collective_errors();
  handlers_may_use_the_file();
  MPI_Errhandler_free(&first);
  MPI_Errhandler_free(&second);
  return end_test();
}
