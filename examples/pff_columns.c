/* pff_columns: an array by columns in a striped file, written and read back with one stride each.
 *
 *   cc pff_columns.c $(pkg-config --cflags --libs shima-pff) && ./a.out columns.dat
 *
 * The array has 256 rows of 1024 doubles.  Its file is striped in blocks of 64 KiB over three
 * subfiles beside it; to every program it is one file of 2 MiB. */
#include <shima/pff.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 256, columns = 1024, taken = 16, first = 100 };

static void check(int64_t code) {
  if (code >= 0) return;
  fprintf(stderr, "pff_columns: %s\n", pff_error_message());
  exit(1);
}

int main(int argc, char** argv) {
  static double array[rows][columns], part[rows][taken];
  const pff_region region = {0, 64 * 1024, 3, "beside"};
  const pff_striping striping = {1, &region};
  pff_file* file;
  pff_where some_columns;
  int row, column;
  if (argc != 2) {
    fputs("usage: pff_columns PATH\n", stderr);
    return 2;
  }

  for (row = 0; row < rows; row++)
    for (column = 0; column < columns; column++) array[row][column] = row * 10000.0 + column;
  check(pff_open(argv[1], PFF_READ | PFF_WRITE | PFF_CREATE, &striping, NULL, &file));
  check(pff_write(file, pff_span(0, sizeof array), array));

  /* Sixteen columns: a piece of every row, at the distance of a row. */
  some_columns = pff_stride(first * sizeof(double), taken * sizeof(double),
                            columns * sizeof(double), sizeof part);
  check(pff_read(file, some_columns, part));
  for (row = 0; row < rows; row++)
    for (column = 0; column < taken; column++) part[row][column] = -part[row][column];
  check(pff_write(file, some_columns, part));

  /* The same columns again, this time into their places in a whole array: memory may be strided as
     well. */
  for (row = 0; row < rows; row++)
    for (column = 0; column < columns; column++) array[row][column] = 0;
  check(pff_read_into(file, some_columns, array, some_columns));
  for (row = 0; row < rows; row++)
    for (column = 0; column < columns; column++)
      if (array[row][column] !=
          (column >= first && column < first + taken ? -(row * 10000.0 + column) : 0))
        return 1;
  printf("%d columns of %d rows, %lld bytes in all\n", taken, rows, (long long)pff_size(file));
  check(pff_close(file));
  return 0;
}
