/* pff_double_buffer: a program that computes the next step while the last one is written.
 *
 *   cc pff_double_buffer.c $(pkg-config --cflags --libs shima-pff) && ./a.out steps.dat
 *
 * Two buffers alternate: while one is filled, the other's request is pending.  The program waits
 * for the request of a buffer before it fills the buffer again. */
#include <shima/pff.h>
#include <stdio.h>
#include <stdlib.h>

enum { steps = 20, cells = 1 << 16 };

static void check(int64_t code) {
  if (code >= 0) return;
  fprintf(stderr, "pff_double_buffer: %s\n", pff_error_message());
  exit(1);
}

static void compute(double* buffer, int step) {
  int i;
  for (i = 0; i < cells; i++) buffer[i] = step + i * 1e-6;
}

int main(int argc, char** argv) {
  static double buffers[2][cells], expected[cells];
  pff_request* under_way[2] = {NULL, NULL};
  const int64_t step_bytes = (int64_t)sizeof buffers[0];
  pff_file* file;
  int step, i;
  if (argc != 2) {
    fputs("usage: pff_double_buffer PATH\n", stderr);
    return 2;
  }
  check(pff_open(argv[1], PFF_READ | PFF_WRITE | PFF_CREATE, NULL, NULL, &file));

  for (step = 0; step < steps; step++) {
    const int turn = step % 2;
    if (under_way[turn] != NULL) check(pff_wait(under_way[turn]));
    compute(buffers[turn], step);
    check(pff_start_write(file, pff_span(step * step_bytes, sizeof buffers[turn]), buffers[turn],
                          &under_way[turn]));
  }
  for (i = 0; i < 2; i++) check(pff_wait(under_way[i]));

  for (step = 0; step < steps; step++) {
    check(pff_read(file, pff_span(step * step_bytes, sizeof buffers[0]), buffers[0]));
    compute(expected, step);
    for (i = 0; i < cells; i++)
      if (buffers[0][i] != expected[i]) return 1;
  }
  printf("%d steps, %lld bytes\n", steps, (long long)pff_size(file));
  check(pff_close(file));
  return 0;
}
