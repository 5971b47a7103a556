// chooser_cells: times the strategies of collective calls against each other, in one job.
//
// A cell is a size of call, a size of pieces, an operation and a number of subfiles. Ranks own the
// pieces in turn. In each repeat of a cell every strategy opens a file with its hint and makes the
// same calls, in random order, so that a slow minute of the machine affects all equally. Repeats
// continue until the cell's seconds are spent. A strategy that is slower than twice the fastest
// one is left out of further repeats: it cannot be the best.
//
//     chooser_cells DIR SECONDS LEAST_REPEATS MOST_REPEATS SEED STRATEGIES CELL...
//
// STRATEGIES: values of the hint shima_collective, separated by commas; "auto" is never left out.
// CELL: id:call_bytes:piece_bytes:write|cached|cold:subfiles; the bytes are of all ranks together.

#include "measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

enum { most_strategies = 8, most_repeats = 64, most_calls = 64, enough_bytes = 32 << 20 };

struct cell {
  char id[64], op[16];
  long call_bytes, piece_bytes;
  int subfiles, calls;
};

struct strategy {
  char name[32];
  bool left_out;
  int count;
  double seconds[most_repeats];
};

struct job {
  const char* directory;
  double budget_s;
  int least, most, rank, np, strategy_count;
  uint64_t dice;
  struct strategy strategies[most_strategies];
  unsigned char* buffer;
};

static int roll(struct job* j, int below) {
  j->dice = j->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((j->dice >> 33) % (uint64_t)below);
}

// --- the file ---------------------------------------------------------------------------------

static void drop_from_cache(const char* path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) return;
  fsync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

// The file, and all subfiles beside it: the directory has no others.
static void make_cold(const struct job* j, const char* path) {
  char name[4096];
  snprintf(name, sizeof name, "%s/.shima", j->directory);
  drop_from_cache(path);
  DIR* subfiles = opendir(name);
  if (!subfiles) return;
  for (struct dirent* entry; (entry = readdir(subfiles));) {
    snprintf(name, sizeof name, "%s/.shima/%s", j->directory, entry->d_name);
    if (entry->d_name[0] != '.') drop_from_cache(name);
  }
  closedir(subfiles);
}

static MPI_File open_file(const struct cell* c, const char* path, const char* strategy, int mode) {
  MPI_Info info;
  MPI_File file;
  char number[16];
  MPI_Info_create(&info);
  MPI_Info_set(info, "shima_collective", strategy);
  if (c->subfiles > 1) {
    snprintf(number, sizeof number, "%d", c->subfiles);
    MPI_Info_set(info, "shima_targets", "beside");
    MPI_Info_set(info, "striping_factor", number);
    MPI_Info_set(info, "striping_unit", "1048576");
  }
  check(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file), "open");
  MPI_Info_free(&info);
  return file;
}

static void set_view(const struct job* j, const struct cell* c, MPI_File file) {
  MPI_Datatype piece, type;
  check(MPI_Type_contiguous((int)c->piece_bytes, MPI_BYTE, &piece), "contiguous");
  check(MPI_Type_create_resized(piece, 0, c->piece_bytes * j->np, &type), "resized");
  check(MPI_Type_commit(&type), "commit");
  check(MPI_File_set_view(file, j->rank * c->piece_bytes, MPI_BYTE, type, "native", MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&piece);
  MPI_Type_free(&type);
}

// --- one open ---------------------------------------------------------------------------------

static long bytes_of_rank(const struct job* j, const struct cell* c) {
  return c->call_bytes / j->np;
}

// Every call of a cell moves the same bytes; the first of each piece tells whose it is.
static void fill(const struct job* j, const struct cell* c, int marked) {
  for (long at = 0; at < bytes_of_rank(j, c); at += c->piece_bytes)
    j->buffer[at] = (unsigned char)(marked ? j->rank + 1 : 0);
}

static void expect_filled(const struct job* j, const struct cell* c) {
  for (long at = 0; at < bytes_of_rank(j, c); at += c->piece_bytes)
    if (j->buffer[at] != j->rank + 1) fail("a read returned wrong bytes");
}

// The seconds of all calls together, of the slowest rank.
static double time_calls(struct job* j, const struct cell* c, const char* path,
                         const char* strategy, bool write) {
  const struct transfer t = {0,        MPI_BYTE,  MPI_DATATYPE_NULL,
                             MPI_BYTE, j->buffer, (int)bytes_of_rank(j, c)};
  MPI_File file =
      open_file(c, path, strategy, write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY);
  set_view(j, c, file);
  meet();
  double started = MPI_Wtime();
  for (int i = 0; i < c->calls; i++) move_collectively(file, write, &t);
  double mine = MPI_Wtime() - started, slowest;
  check(MPI_File_close(&file), "close");
  meet();
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void delete_file(const struct job* j, const char* path) {
  if (j->rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  meet();
}

// Reads use one file for all strategies.
static double run_once(struct job* j, const struct cell* c, const char* strategy) {
  char path[4096];
  const bool write = strcmp(c->op, "write") == 0;
  snprintf(path, sizeof path, "%s/%s.%s", j->directory, c->id, write ? "new" : "data");
  if (write) {
    double seconds = time_calls(j, c, path, strategy, true);
    delete_file(j, path);
    return seconds;
  }
  if (strcmp(c->op, "cold") == 0 && j->rank == 0) make_cold(j, path);
  fill(j, c, 0);
  double seconds = time_calls(j, c, path, strategy, false);
  expect_filled(j, c);
  return seconds;
}

// --- one cell ---------------------------------------------------------------------------------

static double fastest(const struct strategy* s) {
  double least = s->seconds[0];
  for (int i = 1; i < s->count; i++) least = s->seconds[i] < least ? s->seconds[i] : least;
  return least;
}

static void leave_out_slow(struct job* j) {
  double best = fastest(&j->strategies[0]);
  for (int i = 1; i < j->strategy_count; i++) {
    const double one = fastest(&j->strategies[i]);
    best = one < best ? one : best;
  }
  for (int i = 0; i < j->strategy_count; i++) {
    struct strategy* s = &j->strategies[i];
    s->left_out = s->left_out || (strcmp(s->name, "auto") != 0 && fastest(s) > 2 * best);
  }
}

static void repeat_once(struct job* j, const struct cell* c) {
  int order[most_strategies];
  for (int i = 0; i < j->strategy_count; i++) {
    const int at = roll(j, i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (int i = 0; i < j->strategy_count; i++) {
    struct strategy* s = &j->strategies[order[i]];
    if (!s->left_out) s->seconds[s->count++] = run_once(j, c, s->name);
  }
  leave_out_slow(j);
}

static void report(const struct job* j, const struct cell* c) {
  if (j->rank != 0) return;
  printf("{\"cell\":\"%s\",\"calls\":%d,\"seconds\":{", c->id, c->calls);
  for (int i = 0; i < j->strategy_count; i++) {
    const struct strategy* s = &j->strategies[i];
    printf("%s\"%s\":[", i ? "," : "", s->name);
    for (int k = 0; k < s->count; k++) printf("%s%.9f", k ? "," : "", s->seconds[k]);
    printf("]");
  }
  printf("}}\n");
  fflush(stdout);
}

static bool goes_on(const struct job* j, double started, int repeats) {
  int go = repeats < j->least || (repeats < j->most && MPI_Wtime() - started < j->budget_s);
  MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return go;
}

static void run_cell(struct job* j, struct cell* c) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.data", j->directory, c->id);
  j->buffer = malloc((size_t)bytes_of_rank(j, c));
  if (!j->buffer) fail("out of memory");
  memset(j->buffer, 1, (size_t)bytes_of_rank(j, c));
  fill(j, c, 1);
  // The file of the reads; for a write, the first use of memory, types and windows.
  time_calls(j, c, path, "auto", true);
  for (int i = 0; i < j->strategy_count; i++) {
    j->strategies[i].left_out = false;
    j->strategies[i].count = 0;
  }
  const double started = MPI_Wtime();
  for (int repeats = 0; goes_on(j, started, repeats); repeats++) repeat_once(j, c);
  delete_file(j, path);
  report(j, c);
  free(j->buffer);
}

// --- the command line -------------------------------------------------------------------------

static struct cell parse_cell(const struct job* j, const char* text) {
  struct cell c;
  if (sscanf(text, "%63[^:]:%ld:%ld:%15[^:]:%d", c.id, &c.call_bytes, &c.piece_bytes, c.op,
             &c.subfiles) != 5)
    fail("a cell is id:call_bytes:piece_bytes:op:subfiles");
  if (c.piece_bytes < 1 || c.call_bytes % (c.piece_bytes * j->np) != 0)
    fail("the bytes of a call are a multiple of one piece of every rank");
  const long calls = enough_bytes / c.call_bytes;
  c.calls = (int)(calls < 1 ? 1 : calls > most_calls ? most_calls : calls);
  return c;
}

static void parse_strategies(struct job* j, char* text) {
  for (char* name = strtok(text, ","); name; name = strtok(NULL, ",")) {
    if (j->strategy_count == most_strategies) fail("too many strategies");
    struct strategy* s = &j->strategies[j->strategy_count++];
    snprintf(s->name, sizeof s->name, "%s", name);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 8) fail("usage: chooser_cells DIR SECONDS LEAST MOST SEED STRATEGIES CELL...");
  struct job j = {.directory = argv[1],
                  .budget_s = atof(argv[2]),
                  .least = atoi(argv[3]),
                  .most = atoi(argv[4]),
                  .dice = (uint64_t)atol(argv[5])};
  if (j.most > most_repeats) j.most = most_repeats;
  MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &j.np);
  parse_strategies(&j, argv[6]);
  for (int i = 7; i < argc; i++) {
    struct cell c = parse_cell(&j, argv[i]);
    run_cell(&j, &c);
  }
  MPI_Finalize();
  return 0;
}
