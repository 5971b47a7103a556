// model_cells: the times of collective calls.
//
//     model_cells --file FILE --repeat N --most N --seconds S {[--op write|read] [--pattern
//     columns|blocks|irregular]
//                 [--bytes BYTES] [--piece BYTES] --strategy NAME}...
//
// Each --strategy measures a call with the values before it. Ranks access what `shima simulate`
// lets them access.
//
// Prints a JSON object for each call that is measured. A call's time is from the moment when the
// last rank has entered it until the last one has left it, by the clock that all hosts of this
// machine share; each repetition is printed. There are at least --repeat of them; short calls are
// repeated up to --most times, or for --seconds: a few of them take less than one turn of the
// scheduler.

#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "measure.h"

struct cell {
  const char *path, *pattern, *strategy;
  bool write;
  int64_t bytes, piece;
  int repeat, most, rank, ranks;
  double seconds;
};

// As src/simulate/workload.cpp.
static uint64_t scattered(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static MPI_Datatype irregular_type(const struct cell* cell) {
  const int pieces = (int)(cell->bytes / cell->piece > 0 ? cell->bytes / cell->piece : 1);
  int* lens = malloc((size_t)pieces * sizeof *lens);
  MPI_Aint* offsets = malloc((size_t)pieces * sizeof *offsets);
  if (lens == NULL || offsets == NULL) fail("no memory");
  uint64_t unit = 8, begin = 0;
  while ((uint64_t)cell->piece % unit != 0) unit /= 2;
  const uint64_t units = (uint64_t)cell->piece / unit;
  for (int row = 0; row < pieces; row++) {
    const uint64_t dice = scattered((uint64_t)row);
    uint64_t len = units / 2 + dice % (units + 1);
    len = unit * (len > 0 ? len : 1);
    const uint64_t place = ((uint64_t)cell->rank + (dice >> 20)) % (uint64_t)cell->ranks;
    lens[row] = (int)len;
    offsets[row] = (MPI_Aint)(begin + place * len);
    begin += (uint64_t)cell->ranks * len;
  }
  MPI_Datatype type;
  check(MPI_Type_create_hindexed(pieces, lens, offsets, MPI_BYTE, &type), "hindexed");
  free(lens);
  free(offsets);
  return type;
}

static MPI_Datatype filetype_of(const struct cell* cell) {
  MPI_Datatype type;
  if (strcmp(cell->pattern, "irregular") == 0) return irregular_type(cell);
  if (strcmp(cell->pattern, "blocks") == 0) {
    check(MPI_Type_contiguous((int)cell->bytes, MPI_BYTE, &type), "contiguous");
    return type;
  }
  const int pieces = (int)(cell->bytes / cell->piece > 0 ? cell->bytes / cell->piece : 1);
  check(
      MPI_Type_create_hvector(pieces, (int)cell->piece, cell->piece * cell->ranks, MPI_BYTE, &type),
      "hvector");
  return type;
}

static MPI_Offset displacement_of(const struct cell* cell) {
  if (strcmp(cell->pattern, "irregular") == 0) return 0;
  return cell->rank * (strcmp(cell->pattern, "blocks") == 0 ? cell->bytes : cell->piece);
}

static double clock_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct times {
  double begin, end;
};

static struct times timed_call(const struct cell* cell, MPI_File file, char* buffer, int bytes) {
  MPI_Status status;
  struct times times;
  check(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
  meet();
  times.begin = clock_s();
  if (cell->write)
    check(MPI_File_write_all(file, buffer, bytes, MPI_BYTE, &status), "write_all");
  else
    check(MPI_File_read_all(file, buffer, bytes, MPI_BYTE, &status), "read_all");
  times.end = clock_s();
  return times;
}

// Not before all calls: ranks that are done would spin in it, on cores that others need.
static void print_times(const struct cell* cell, const struct times* mine) {
  struct times* last = calloc((size_t)cell->repeat, sizeof *last);
  if (last == NULL) fail("no memory");
  MPI_Reduce(mine, last, 2 * cell->repeat, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (cell->rank == 0) printf("{\"seconds\": [");
  for (int i = 0; cell->rank == 0 && i < cell->repeat; i++)
    printf("%s%.9f", i == 0 ? "" : ", ", last[i].end - last[i].begin);
  if (cell->rank == 0) printf("]}\n");
  fflush(stdout);
  free(last);
}

// How often a call is measured that takes as long as `times` on the slowest rank.
static int repetitions(const struct cell* cell, struct times times) {
  double mine = times.end - times.begin, slowest;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (slowest * cell->repeat >= cell->seconds) return cell->repeat;
  return slowest * cell->most <= cell->seconds ? cell->most : (int)(cell->seconds / slowest);
}

// The first call creates the pages of the file, or reads them; it is not printed. Neither is the
// second, which tells how often to repeat it.
static void measure_cell(struct cell* cell) {
  MPI_Datatype filetype = filetype_of(cell);
  check(MPI_Type_commit(&filetype), "commit");
  int bytes;
  MPI_Type_size(filetype, &bytes);
  char* buffer = malloc((size_t)bytes);
  if (buffer == NULL) fail("no memory");
  memset(buffer, cell->rank, (size_t)bytes);
  MPI_Info hints;
  check(MPI_Info_create(&hints), "info");
  check(MPI_Info_set(hints, "shima_collective", cell->strategy), "info");
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, cell->path,
                      MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, hints, &file),
        "open");
  MPI_Info_free(&hints);
  check(MPI_File_set_view(file, displacement_of(cell), MPI_BYTE, filetype, "native", MPI_INFO_NULL),
        "set_view");
  struct cell first = *cell;
  first.write = true;
  timed_call(&first, file, buffer, bytes);
  const int least = cell->repeat;
  cell->repeat = repetitions(cell, timed_call(cell, file, buffer, bytes));
  struct times* times = calloc((size_t)cell->repeat, sizeof *times);
  if (times == NULL) fail("no memory");
  for (int i = 0; i < cell->repeat; i++) times[i] = timed_call(cell, file, buffer, bytes);
  print_times(cell, times);
  cell->repeat = least;
  free(times);
  check(MPI_File_close(&file), "close");
  MPI_Type_free(&filetype);
  free(buffer);
}

static void set(struct cell* cell, const char* name, const char* value) {
  if (strcmp(name, "--file") == 0) cell->path = value;
  if (strcmp(name, "--pattern") == 0) cell->pattern = value;
  if (strcmp(name, "--op") == 0) cell->write = strcmp(value, "write") == 0;
  if (strcmp(name, "--bytes") == 0) cell->bytes = atoll(value);
  if (strcmp(name, "--piece") == 0) cell->piece = atoll(value);
  if (strcmp(name, "--repeat") == 0) cell->repeat = atoi(value);
  if (strcmp(name, "--most") == 0) cell->most = atoi(value);
  if (strcmp(name, "--seconds") == 0) cell->seconds = atof(value);
  if (strcmp(name, "--strategy") == 0) cell->strategy = value;
  if (cell->bytes < 1 || cell->piece < 1 || cell->repeat < 1) fail("a value is below 1");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct cell cell = {
      .pattern = "columns", .bytes = 1 << 20, .piece = 4096, .repeat = 5, .most = 5};
  MPI_Comm_rank(MPI_COMM_WORLD, &cell.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &cell.ranks);
  for (int i = 1; i + 1 < argc; i += 2) {
    set(&cell, argv[i], argv[i + 1]);
    if (strcmp(argv[i], "--strategy") != 0) continue;
    if (cell.path == NULL) fail("--file FILE is missing");
    measure_cell(&cell);
  }
  MPI_Finalize();
  return 0;
}
