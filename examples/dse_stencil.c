/* dse_stencil: heat on a surface without borders, which is dealt to the tasks of a torus in blocks;
 * each task writes its edges into its neighbors' memory.
 *
 *   cc dse_stencil.c -lshima-dse -lshima-dsm
 *   shima dse run --topology torus:4x2 ./a.out
 *   shima dse run -f hosts --topology torus:4x2 --verbose ./a.out
 *
 * There are two generations of cells. In each step a task computes the new one from the old one and
 * the halo around it, and writes its edges of the new one where its neighbors will look for them;
 * after the barrier they are there. No heat gets lost, so that the sum stays the same. */
#include <math.h>
#include <shima/dse.h>
#include <shima/dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 64, columns = 64, steps = 200 };

/* What a task donates: in each generation a halo and, in the middle, its block. */
typedef struct surface {
  double north[2][columns], south[2][columns], west[2][rows], east[2][rows];
  double sum; /* of a task's cells; task 0 has one for each task */
} surface;

static double cells[2][rows][columns];

static int checked(int code, const char* text) {
  if (code >= 0) return code;
  fprintf(stderr, "%s\n", text);
  exit(1);
}

static int neighbor(const char* name) { return checked(dse_neighbor(name), dse_error_message()); }

static void put(dsm* memory, int task, size_t offset, const void* data, size_t len) {
  checked(dsm_write(memory, task, offset, data, len), dsm_error_message());
}

/* My northern edge is the southern halo of my northern neighbor, and so on. */
static void give_edges(dsm* memory, int now) {
  double west[rows], east[rows];
  const size_t line = sizeof cells[0][0], at_row = (size_t)now * line,
               at_column = (size_t)now * sizeof west;
  for (int row = 0; row < rows; row++) {
    west[row] = cells[now][row][0];
    east[row] = cells[now][row][columns - 1];
  }
  put(memory, neighbor("north"), offsetof(surface, south) + at_row, cells[now][0], line);
  put(memory, neighbor("south"), offsetof(surface, north) + at_row, cells[now][rows - 1], line);
  put(memory, neighbor("west"), offsetof(surface, east) + at_column, west, sizeof west);
  put(memory, neighbor("east"), offsetof(surface, west) + at_column, east, sizeof east);
  checked(dsm_barrier(memory), dsm_error_message());
}

static void step(const surface* halo, int from) {
  double(*old)[columns] = cells[from], (*new)[columns] = cells[1 - from];
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      double north = row > 0 ? old[row - 1][column] : halo->north[from][column];
      double south = row < rows - 1 ? old[row + 1][column] : halo->south[from][column];
      double west = column > 0 ? old[row][column - 1] : halo->west[from][row];
      double east = column < columns - 1 ? old[row][column + 1] : halo->east[from][row];
      new[row][column] =
          old[row][column] + 0.2 * (north + south + west + east - 4 * old[row][column]);
    }
}

int main(void) {
  dsm* memory;
  int at[2], task = checked(dse_task(), dse_error_message()), tasks = dse_tasks();
  size_t size = sizeof(surface) + sizeof(double) * (size_t)(task == 0 ? tasks : 0);
  checked(dsm_open(&(dsm_options){.size = size}, &memory), dsm_error_message());
  const surface* halo = dsm_address(memory);

  checked(dse_coordinates(task, at, 2), dse_error_message());
  if (task == 0) cells[0][rows / 2][columns / 2] = 1000; /* one hot cell */
  give_edges(memory, 0);
  for (int i = 0; i < steps; i++) {
    step(halo, i % 2);
    give_edges(memory, 1 - i % 2);
  }

  double sum = 0, all = 0;
  for (int i = 0; i < rows * columns; i++) sum += cells[steps % 2][i / columns][i % columns];
  put(memory, 0, offsetof(surface, sum) + sizeof sum * (size_t)task, &sum, sizeof sum);
  checked(dsm_barrier(memory), dsm_error_message());
  for (int i = 0; task == 0 && i < tasks; i++) all += (&halo->sum)[i];
  if (task == 0) printf("%s: %d steps, heat %.6f\n", dse_topology(), steps, all);
  checked(dsm_close(memory), dsm_error_message());
  return task == 0 && fabs(all - 1000) > 1e-6;
}
