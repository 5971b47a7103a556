/* RANKS: none */
/* The calls of dse.h in a job of `shima dse run --topology torus:3x2`: neighbors, and other
   topologies while the job runs, also beside LAPI. tests/dse/programs.py starts it. */
#include <lapi.h>
#include <shima/dse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(found, wanted)                                                                \
  do {                                                                                       \
    long found_ = (found), wanted_ = (wanted);                                               \
    if (found_ != wanted_)                                                                   \
      failures++, fprintf(stderr, "task %d, line %d: %s is %ld, not %ld (%s)\n", dse_task(), \
                          __LINE__, #found, found_, wanted_, dse_error_message());           \
  } while (0)

static void check_torus(int task) {
  int at[3] = {-1, -1, -1};
  const char* name = NULL;
  EXPECT(strcmp(dse_topology(), "torus:3x2"), 0);
  EXPECT(dse_neighbor("north"), (task + 4) % 6);
  EXPECT(dse_neighbor("south"), (task + 2) % 6);
  EXPECT(dse_neighbor("east"), task ^ 1);
  EXPECT(dse_neighbor("dim1-"), task ^ 1);
  EXPECT(dse_neighbor_of(5, "south"), 1);
  EXPECT(dse_neighbor("up"), DSE_ERR_NO_NEIGHBOR);
  EXPECT(strstr(dse_error_message(), "no neighbor named 'up'") != NULL, 1);
  EXPECT(dse_neighbor(NULL), DSE_ERR_ARGUMENT);
  EXPECT(dse_neighbor_of(6, "east"), DSE_ERR_ARGUMENT);
  EXPECT(dse_neighbors(task), 4);
  EXPECT(dse_neighbor_at(0, 0, &name), 4);
  EXPECT(strcmp(name, "north"), 0);
  EXPECT(dse_neighbor_at(0, 4, NULL), DSE_ERR_NO_NEIGHBOR);
  EXPECT(dse_coordinates(5, at, 3), 2);
  EXPECT(at[0] * 100 + at[1] * 10 + at[2], 209);
  EXPECT(dse_coordinates(5, NULL, 1), DSE_ERR_ARGUMENT);
}

/* Whoever has changed, all have. */
static void check_changes(int task) {
  EXPECT(dse_set_topology("ring"), 0);
  EXPECT(dse_neighbor("right"), (task + 1) % 6);
  EXPECT(dse_set_topology(task == 2 ? "mesh:6x1" : "mesh:2x3"), DSE_ERR_NOT_SAME);
  EXPECT(dse_neighbor("right"), (task + 1) % 6);
  EXPECT(dse_set_topology(task == 3 ? "mesh:7" : "mesh:2x3"),
         task == 3 ? DSE_ERR_ARGUMENT : DSE_ERR_NOT_SAME);
  EXPECT(strcmp(dse_topology(), "ring:6"), 0);
  EXPECT(dse_set_topology(NULL), DSE_ERR_ARGUMENT);
  EXPECT(dse_set_topology("mesh:2x3"), 0);
  EXPECT(dse_neighbor("south"), task < 3 ? task + 3 : DSE_ERR_NO_NEIGHBOR);
  EXPECT(dse_set_topology("graph:star"), 0);
  EXPECT(dse_neighbor("center"), task == 0 ? DSE_ERR_NO_NEIGHBOR : 0);
  EXPECT(dse_neighbors(0), 5);
  EXPECT(dse_coordinates(task, NULL, 0), 0);
  for (int i = 0; i < 100; i++) EXPECT(dse_set_topology(i % 2 ? "ring" : "torus:2x3"), 0);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "alone") == 0) return dse_task() == DSE_ERR_NOT_A_TASK ? 0 : 1;
  int task = dse_task(), number = -1;
  lapi_handle_t handle;
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  EXPECT(dse_tasks(), 6);
  check_torus(task);
  EXPECT(LAPI_Init(&handle, &info), LAPI_SUCCESS);
  LAPI_Qenv(handle, TASK_ID, &number);
  EXPECT(number, task);
  if (argc > 1 && strcmp(argv[1], "lost") == 0) { /* task 5 ends without a word */
    if (task == 5) _Exit(0);
    EXPECT(dse_set_topology("ring"), DSE_ERR_LOST);
    return failures != 0;
  }
  check_changes(task);
  LAPI_Term(handle);
  return failures != 0;
}
