// subgroup: collective I/O in groups, as a program does it by itself in MPI, and what each step
// costs.
//
// The method is that of K. Cha, H. Cho and S. Kim, "An Analysis of the Performance of Collective
// I/Os and the Subgroup Method" (KISTI). Ranks are put in groups of K. Before a collective write
// the members of a group hand their data to the group's master (MPI_Gather); after a collective
// read they get it from there (MPI_Scatter). Only masters open the file and call the collective:
//
//     ranks     0 1 2 3   4 5 6 7        K = 4
//               └─┴┬┴─┘   └─┴┬┴─┘        gather; or scatter, after a read
//     masters      0         4           MPI_File_write_at_all, MPI_File_read_at_all
//                  └────┬────┘
//     file       [0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 ...]
//
// With K = 1 there are no groups: each rank makes the collective call with its own data. Groups
// follow the machine: a group has ranks of one node only, in the order of their ranks.
//
// The file is a list of records, one per call. In a record the pieces of all ranks alternate. Every
// 64-bit word holds a function of its own file offset, so a reader can check every byte and the
// file is the same for any K.
//
// The four costs (split, gather, collective call, scatter) are timed one by one, each as a round of
// `calls` calls between two barriers; the slowest rank counts. The whole access, gather and write
// or read and scatter, is timed in a round of its own, without barriers in it: its steps overlap.
//
// This is an ordinary MPI program: it includes mpi.h and does not refer to Shima.

#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum op { WRITE, READ, OPS };
enum { MOST_VALUES = 16 };

static const char* const op_names[OPS] = {"write", "read"};
static const double bytes_per_mib = 1024.0 * 1024.0;

// A list given on the command line, as 1,2,4.
struct list {
  long values[MOST_VALUES];
  int count;
};

struct options {
  struct list groups, bytes;
  long pieces, calls, repeat, limit_mib;
  bool ops[OPS];
  bool json, help;
  const char* path;
};

// What a rank moves: `calls` times `bytes`, in `pieces` pieces each time.
struct data {
  int rank, np;
  long bytes, pieces, piece_bytes, calls;
  unsigned char* own;  // of all calls, one after the other
};

// A rank's group, and the access of its master.
struct groups {
  MPI_Comm group;      // members and master, which is rank 0
  MPI_Comm masters;    // MPI_COMM_NULL on ranks that are no masters
  bool grouped;        // K > 1
  int members;         // of this rank's group
  unsigned char* all;  // master: the group's data of one call, in the order of the file
  MPI_Datatype slot;   // one member's data in `all`
  MPI_Datatype view;   // the group's pieces of one row of the file
};

// Seconds a call, those of the slowest rank.
struct costs {
  double split, gather, io, scatter, whole;
};

static void fail(const char* what) {
  fprintf(stderr, "subgroup: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 64];
  int length;
  MPI_Error_string(code, text, &length);
  snprintf(line, sizeof line, "%s: %s", call, text);
  fail(line);
}

static void* allocate(size_t bytes) {
  unsigned char* memory = malloc(bytes);
  if (!memory) fail("out of memory; choose fewer --bytes or smaller groups");
  memset(memory, 0xA5, bytes);  // page faults belong to no cost
  return memory;
}

// --- the data ---------------------------------------------------------------------------------

// Multiplying by an odd number is a bijection on 64-bit words: no two offsets share a value.
static inline uint64_t word_at(uint64_t file_offset) {
  return (file_offset / 8 + 1) * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t piece_offset(const struct data* d, long call, long piece) {
  uint64_t row = (uint64_t)(call * d->pieces + piece);
  return (row * (uint64_t)d->np + (uint64_t)d->rank) * (uint64_t)d->piece_bytes;
}

static void fill(const struct data* d) {
  uint64_t* word = (uint64_t*)d->own;
  for (long call = 0; call < d->calls; call++)
    for (long piece = 0; piece < d->pieces; piece++)
      for (uint64_t i = 0, at = piece_offset(d, call, piece); i < (uint64_t)d->piece_bytes; i += 8)
        *word++ = word_at(at + i);
}

static long count_wrong_words(const struct data* d) {
  const uint64_t* word = (const uint64_t*)d->own;
  long wrong = 0, all = 0;
  for (long call = 0; call < d->calls; call++)
    for (long piece = 0; piece < d->pieces; piece++)
      for (uint64_t i = 0, at = piece_offset(d, call, piece); i < (uint64_t)d->piece_bytes; i += 8)
        wrong += *word++ != word_at(at + i);
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void forget(const struct data* d) { memset(d->own, 0xA5, (size_t)(d->calls * d->bytes)); }

// --- timing -----------------------------------------------------------------------------------

// A barrier that sleeps. On a machine with fewer cores than ranks, an MPI barrier that spins would
// take cores from the masters while they are in the collective call.
static void meet(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) usleep(50);
}

static double start_round(void) {
  meet();
  return MPI_Wtime();
}

// Seconds a call, of the slowest rank.
static double end_round(double started, long calls) {
  double mine = (MPI_Wtime() - started) / (double)calls, slowest;
  meet();
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

// --- groups -----------------------------------------------------------------------------------

static void split(long k, struct groups* g) {
  MPI_Comm node;
  int rank, place;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &place);
  MPI_Comm_split(node, (int)(place / k), place, &g->group);
  MPI_Comm_split(MPI_COMM_WORLD, place % k == 0 ? 0 : MPI_UNDEFINED, rank, &g->masters);
  MPI_Comm_free(&node);
}

// The members' pieces in one row of the file, whose extent is that of all ranks' pieces.
static MPI_Datatype make_view(const struct data* d, const struct groups* g) {
  int* places = allocate((size_t)g->members * sizeof *places);
  int* ranks = allocate((size_t)g->members * sizeof *ranks);
  MPI_Aint* offsets = allocate((size_t)g->members * sizeof *offsets);
  MPI_Group members, world;
  MPI_Comm_group(g->group, &members);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int i = 0; i < g->members; i++) places[i] = i;
  MPI_Group_translate_ranks(members, g->members, places, world, ranks);
  for (int i = 0; i < g->members; i++) offsets[i] = (MPI_Aint)ranks[i] * d->piece_bytes;

  MPI_Datatype row, view;
  MPI_Type_create_hindexed_block(g->members, (int)d->piece_bytes, offsets, MPI_BYTE, &row);
  MPI_Type_create_resized(row, 0, (MPI_Aint)d->np * d->piece_bytes, &view);
  MPI_Type_commit(&view);
  MPI_Type_free(&row);
  MPI_Group_free(&members), MPI_Group_free(&world);
  free(places), free(ranks), free(offsets);
  return view;
}

// One member's pieces among those of its group; the next member's begin one piece later.
static MPI_Datatype make_slot(const struct data* d, int members) {
  MPI_Datatype pieces, slot;
  MPI_Type_vector((int)d->pieces, (int)d->piece_bytes, members * (int)d->piece_bytes, MPI_BYTE,
                  &pieces);
  MPI_Type_create_resized(pieces, 0, (MPI_Aint)d->piece_bytes, &slot);
  MPI_Type_commit(&slot);
  MPI_Type_free(&pieces);
  return slot;
}

static struct groups make_groups(long k, const struct data* d, double* seconds) {
  struct groups g = {.group = MPI_COMM_SELF, .masters = MPI_COMM_WORLD, .grouped = k > 1};
  double started = start_round();
  if (g.grouped) split(k, &g);
  *seconds = g.grouped ? end_round(started, 1) : 0;
  MPI_Comm_size(g.group, &g.members);
  if (g.members * d->bytes > INT_MAX) fail("a group's data of one call must be below 2 GiB");
  g.slot = make_slot(d, g.members);
  if (g.masters == MPI_COMM_NULL) return g;
  g.view = make_view(d, &g);
  if (g.grouped) g.all = allocate((size_t)(g.members * d->bytes));
  return g;
}

static void free_groups(struct groups* g) {
  MPI_Type_free(&g->slot);
  if (g->masters != MPI_COMM_NULL) MPI_Type_free(&g->view);
  if (g->grouped && g->masters != MPI_COMM_NULL) MPI_Comm_free(&g->masters);
  if (g->grouped) MPI_Comm_free(&g->group);
  free(g->all);
}

// --- the steps of an access -------------------------------------------------------------------

static void gather(const struct data* d, const struct groups* g, long call) {
  MPI_Gather(d->own + call * d->bytes, (int)d->bytes, MPI_BYTE, g->all, 1, g->slot, 0, g->group);
}

static void scatter(const struct data* d, const struct groups* g, long call) {
  MPI_Scatter(g->all, 1, g->slot, d->own + call * d->bytes, (int)d->bytes, MPI_BYTE, 0, g->group);
}

static void collective(enum op op, const struct data* d, const struct groups* g, MPI_File file,
                       long call) {
  if (g->masters == MPI_COMM_NULL) return;
  unsigned char* buffer = g->all ? g->all : d->own + call * d->bytes;
  int bytes = (int)(g->members * d->bytes), moved = 0;
  MPI_Offset offset = (MPI_Offset)call * bytes;  // within the view
  MPI_Status status;
  if (op == WRITE)
    check(MPI_File_write_at_all(file, offset, buffer, bytes, MPI_BYTE, &status),
          "MPI_File_write_at_all");
  else
    check(MPI_File_read_at_all(file, offset, buffer, bytes, MPI_BYTE, &status),
          "MPI_File_read_at_all");
  MPI_Get_count(&status, MPI_BYTE, &moved);
  if (moved != bytes) fail("a call moved fewer bytes than requested");
}

static MPI_File open_file(enum op op, const struct groups* g, const char* path) {
  MPI_File file = MPI_FILE_NULL;
  int amode = op == WRITE ? MPI_MODE_WRONLY | MPI_MODE_CREATE : MPI_MODE_RDONLY;
  if (g->masters == MPI_COMM_NULL) return file;
  check(MPI_File_open(g->masters, path, amode, MPI_INFO_NULL, &file), "MPI_File_open");
  check(MPI_File_set_view(file, 0, MPI_BYTE, g->view, "native", MPI_INFO_NULL),
        "MPI_File_set_view");
  return file;
}

static void close_file(MPI_File file) {
  if (file != MPI_FILE_NULL) check(MPI_File_close(&file), "MPI_File_close");
}

// A write creates a new file each time: overwriting cached pages is another experiment.
static void begin(enum op op, const struct data* d, const char* path) {
  if (op == WRITE && d->rank == 0) unlink(path);
  meet();
}

// --- the rounds -------------------------------------------------------------------------------

static double time_message(enum op op, const struct data* d, const struct groups* g) {
  double started = start_round();
  for (long call = 0; call < d->calls; call++) {
    if (op == WRITE) gather(d, g, call);
    if (op == READ) scatter(d, g, call);
  }
  return end_round(started, d->calls);
}

// The masters' collective calls alone: of whatever the masters' buffers hold.
static double time_collective(enum op op, const struct data* d, const struct groups* g,
                              const char* path) {
  begin(op, d, path);
  MPI_File file = open_file(op, g, path);
  double started = start_round();
  for (long call = 0; call < d->calls; call++) collective(op, d, g, file, call);
  double seconds = end_round(started, d->calls);
  close_file(file);
  return seconds;
}

static double time_whole(enum op op, const struct data* d, const struct groups* g,
                         const char* path) {
  begin(op, d, path);
  MPI_File file = open_file(op, g, path);
  double started = start_round();
  for (long call = 0; call < d->calls; call++) {
    if (op == WRITE && g->grouped) gather(d, g, call);
    collective(op, d, g, file, call);
    if (op == READ && g->grouped) scatter(d, g, call);
  }
  double seconds = end_round(started, d->calls);
  close_file(file);
  return seconds;
}

static struct costs time_access(enum op op, const struct data* d, const struct groups* g,
                                const char* path) {
  struct costs c = {0};
  if (op == WRITE) fill(d);
  if (g->grouped) {
    double seconds = time_message(op, d, g);
    *(op == WRITE ? &c.gather : &c.scatter) = seconds;
    c.io = time_collective(op, d, g, path);
  }
  if (op == READ) forget(d);
  c.whole = time_whole(op, d, g, path);
  if (!g->grouped) c.io = c.whole;
  return c;
}

// --- reporting --------------------------------------------------------------------------------

static double mib_per_second(const struct data* d, struct costs c) {
  return (double)d->bytes * d->np / bytes_per_mib / c.whole;
}

// Rank 0 is the first master, so it knows their number.
static int number_of_groups(const struct groups* g) {
  int groups;
  MPI_Comm_size(g->masters, &groups);
  return groups;
}

static void report_json(enum op op, const struct data* d, long k, int groups, struct costs c,
                        long wrong_words) {
  printf(
      "{\"program\":\"subgroup\",\"op\":\"%s\",\"np\":%d,\"group\":%ld,\"groups\":%d,"
      "\"bytes\":%ld,\"pieces\":%ld,\"calls\":%ld,\"split_us\":%.2f,\"gather_us\":%.2f,"
      "\"call_us\":%.2f,\"scatter_us\":%.2f,\"whole_us\":%.2f,\"mib_s\":%.2f,"
      "\"wrong_words\":%ld}\n",
      op_names[op], d->np, k, groups, d->bytes, d->pieces, d->calls, c.split * 1e6, c.gather * 1e6,
      c.io * 1e6, c.scatter * 1e6, c.whole * 1e6, mib_per_second(d, c), wrong_words);
}

static void report_text(enum op op, const struct data* d, long k, int groups, struct costs c,
                        long wrong_words) {
  printf("%s: %d ranks, groups of %ld (%d masters), %ld bytes a rank in %ld pieces, %ld calls\n",
         op_names[op], d->np, k, groups, d->bytes, d->pieces, d->calls);
  if (k > 1) printf("  split         %12.1f us, once\n", c.split * 1e6);
  if (k > 1 && op == WRITE) printf("  gather        %12.1f us a call\n", c.gather * 1e6);
  printf("  %s_at_all%s  %12.1f us a call\n", op_names[op], op == READ ? " " : "", c.io * 1e6);
  if (k > 1 && op == READ) printf("  scatter       %12.1f us a call\n", c.scatter * 1e6);
  printf("  whole access  %12.1f us a call, %.1f MiB/s%s\n", c.whole * 1e6, mib_per_second(d, c),
         wrong_words ? "  WRONG DATA" : "");
}

// One group size and number of bytes, `repeat` times. Returns whether all bytes read were right.
static bool run_cell(long k, const struct data* d, const struct options* o) {
  bool right = true;
  for (long i = 0; i < o->repeat; i++) {
    double split_seconds;
    struct groups g = make_groups(k, d, &split_seconds);
    for (int op = 0; op < OPS; op++) {
      if (!o->ops[op]) continue;
      struct costs c = time_access((enum op)op, d, &g, o->path);
      c.split = split_seconds;
      long wrong_words = op == READ ? count_wrong_words(d) : 0;
      if (d->rank == 0)
        (o->json ? report_json : report_text)((enum op)op, d, k, number_of_groups(&g), c,
                                              wrong_words);
      right &= wrong_words == 0;
    }
    free_groups(&g);
  }
  fflush(stdout);
  return right;
}

// --- the command line -------------------------------------------------------------------------

static const char usage[] =
    "usage: subgroup [options]\n"
    "Collective I/O in groups of ranks: times MPI_Comm_split, MPI_Gather, the collective call of "
    "the\n"
    "groups' masters and MPI_Scatter one by one, then the whole access. Checks what it reads.\n"
    "  --group K[,K...]   ranks in a group; 1: every rank makes the collective call (default 1,4)\n"
    "  --bytes N[,N...]   bytes a rank and call; K and M are units (default 64K)\n"
    "  --pieces N         pieces a rank and call; those of all ranks alternate (default 16)\n"
    "  --calls N          calls on a file (default 8); --limit-mib may make it fewer\n"
    "  --limit-mib N      most MiB in a file of several calls (default 64)\n"
    "  --repeat N         repetitions, each with new groups and a new file (default 1)\n"
    "  --op write|read|both   default both; read alone needs the file of an earlier write\n"
    "  --file PATH        default subgroup.dat\n"
    "  --json             a line of JSON for each access\n"
    "  --help             this text\n";

static long to_number(const char* text, char** end) {
  long value = strtol(text, end, 10);
  long unit = **end == 'K' ? 1024 : **end == 'M' ? 1024 * 1024 : 1;
  if (unit > 1) ++*end;
  return value < 1 || value > INT_MAX / unit ? 0 : value * unit;
}

// Returns an empty list for anything but numbers from 1 on.
static struct list to_list(const char* text) {
  struct list list = {{0}, 0};
  for (char* end; list.count < MOST_VALUES; text = end + 1) {
    long value = to_number(text, &end);
    if (value == 0) break;
    list.values[list.count++] = value;
    if (*end == '\0') return list;
    if (*end != ',') break;
  }
  return (struct list){{0}, 0};
}

static void set_option(struct options* o, const char* name, const char* value) {
  struct list list = value ? to_list(value) : (struct list){{0}, 0};
  if (strcmp(name, "group") == 0) o->groups = list;
  if (strcmp(name, "bytes") == 0) o->bytes = list;
  if (strcmp(name, "pieces") == 0) o->pieces = list.values[0];
  if (strcmp(name, "calls") == 0) o->calls = list.values[0];
  if (strcmp(name, "limit-mib") == 0) o->limit_mib = list.values[0];
  if (strcmp(name, "repeat") == 0) o->repeat = list.values[0];
  if (strcmp(name, "file") == 0) o->path = value;
  if (strcmp(name, "json") == 0) o->json = true;
  if (strcmp(name, "help") == 0) o->help = true;
  if (strcmp(name, "op") == 0)
    for (int op = 0; op < OPS; op++)
      o->ops[op] = strcmp(value, "both") == 0 || strcmp(value, op_names[op]) == 0;
}

static struct options parse(int argc, char** argv) {
  static const struct option table[] = {{"group", required_argument, 0, 1},
                                        {"bytes", required_argument, 0, 1},
                                        {"pieces", required_argument, 0, 1},
                                        {"calls", required_argument, 0, 1},
                                        {"limit-mib", required_argument, 0, 1},
                                        {"repeat", required_argument, 0, 1},
                                        {"op", required_argument, 0, 1},
                                        {"file", required_argument, 0, 1},
                                        {"json", no_argument, 0, 1},
                                        {"help", no_argument, 0, 1},
                                        {0, 0, 0, 0}};
  struct options o = {.groups = {{1, 4}, 2},
                      .bytes = {{65536}, 1},
                      .pieces = 16,
                      .calls = 8,
                      .repeat = 1,
                      .limit_mib = 64,
                      .ops = {true, true},
                      .path = "subgroup.dat"};
  int index;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", table, &index)) != -1;) {
    if (c != 1) return (struct options){.path = NULL};
    set_option(&o, table[index].name, optarg);
  }
  if (optind != argc) o.path = NULL;
  return o;
}

// What is wrong with the options, or NULL.
static const char* rule_broken(const struct options* o) {
  if (!o->path) return "unknown option; --help lists them";
  if (!o->groups.count || !o->bytes.count || !o->pieces || !o->calls || !o->limit_mib || !o->repeat)
    return "a number must be at least 1, a list has at most 16 numbers, and 2 GiB is too much";
  if (!o->ops[WRITE] && !o->ops[READ]) return "--op is write, read or both";
  for (int i = 0; i < o->bytes.count; i++)
    if (o->bytes.values[i] % (8 * o->pieces))
      return "--bytes must be a multiple of 8 times --pieces, because a piece is a number of words";
  return NULL;
}

static bool run_size(long bytes, const struct options* o) {
  struct data d = {.bytes = bytes, .pieces = o->pieces, .piece_bytes = bytes / o->pieces};
  MPI_Comm_rank(MPI_COMM_WORLD, &d.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &d.np);
  long fitting = o->limit_mib * 1024 * 1024 / (bytes * d.np);
  d.calls = fitting < 1 ? 1 : fitting < o->calls ? fitting : o->calls;
  d.own = allocate((size_t)(d.calls * bytes));
  bool right = true;
  for (int i = 0; i < o->groups.count; i++) right &= run_cell(o->groups.values[i], &d, o);
  free(d.own);
  return right;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct options o = parse(argc, argv);
  const char* wrong = o.help ? NULL : rule_broken(&o);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && o.help) fputs(usage, stdout);
  if (rank == 0 && wrong) fprintf(stderr, "subgroup: %s\n", wrong);
  bool right = true;
  for (int i = 0; !o.help && !wrong && i < o.bytes.count; i++)
    right &= run_size(o.bytes.values[i], &o);
  MPI_Finalize();
  return wrong ? 2 : right ? 0 : 1;
}
