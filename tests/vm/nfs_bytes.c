// RANKS: none
// (started by nfs.py on its own machines) Ranks on two NFS clients write parts of the same pages:
// nfs_bytes DIRECTORY MODELS SEED [striped].
//
// Every rank knows the expected contents of the whole file (the model). Each case uses a separate
// file in DIRECTORY. A case has several rounds. In a round each rank writes its blocks, in one of
// several ways; then either all sync or reopen and every rank reads the whole file, or each reads
// its own bytes. At the end rank 0 writes the model to the directory MODELS, outside NFS, for a
// comparison with the server's file, because a client may have bytes in its own cache that the
// server lost. Each case prints the number of requests that its clients sent to the server.
#include <stdbool.h>

#include "mpi/expect.h"

enum { most_bytes = 4 << 20, most_blocks = 4096 };

struct block {
  long long offset;
  int len, owner;  // -1: no rank
};

enum way { together, alone, later_together, later_alone, one_by_one, one_by_one_later, ways };
enum settle { nothing, by_sync, by_reopening, settles };

static const char *directory, *models;
static bool striped;
static char path[1000];
static MPI_File fh;
static unsigned char model[most_bytes], mine[most_bytes], found[most_bytes];
static long long model_bytes;
static struct block blocks[most_blocks];
static int block_count;
static int value_round;
static unsigned long long dice;
static long long wrong;

// The same on all ranks.
static int throw_below(int sides) {
  dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((dice >> 33) % (unsigned)sides);
}

static void open_file(void) {
  MPI_Info info = MPI_INFO_NULL;
  if (striped) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "shima_targets", "beside");
    MPI_Info_set(info, "striping_factor", "3");
    MPI_Info_set(info, "striping_unit", "5000");
  }
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  if (striped) MPI_Info_free(&info);
}

static void note_wrong(const char* what, long long at, int is, int should) {
  if (wrong++ == 0)
    printf("wrong: rank %d: %s: %s: byte %lld is %d, not %d\n", here, path, what, at, is, should);
  fflush(stdout);
}

// A barrier of which the waiting ranks sleep: the emulated machines share the processors of their
// host, and the MPIs poll.
static void meet(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
       MPI_Test(&request, &done, MPI_STATUS_IGNORE))
    usleep(1000);
}

// --- requests of the clients to the server

enum { operations = 4 };
static const char* const operation[operations] = {"READ", "WRITE", "COMMIT", "LOCK"};
static long long counts_before[operations];

static void read_counts(long long* counts) {
  char line[1000], wanted[1000], name[100];
  bool inside = false;
  long long count;
  FILE* stats = fopen("/proc/self/mountstats", "r");
  memset(counts, 0, operations * sizeof *counts);
  snprintf(wanted, sizeof wanted, " mounted on %.*s ", (int)strcspn(directory + 1, "/") + 1,
           directory);
  while (stats != NULL && fgets(line, sizeof line, stats) != NULL) {
    if (strncmp(line, "device ", 7) == 0) inside = strstr(line, wanted) != NULL;
    if (!inside || sscanf(line, " %99[A-Z]: %lld", name, &count) != 2) continue;
    for (int i = 0; i < operations; ++i)
      if (strcmp(name, operation[i]) == 0) counts[i] = count;
  }
  if (stats != NULL) fclose(stats);
}

static void print_counts(const char* name) {
  long long now[operations], sum[operations];
  MPI_Comm node;
  int first = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &first);
  MPI_Comm_free(&node);
  read_counts(now);
  for (int i = 0; i < operations; ++i) now[i] = first == 0 ? now[i] - counts_before[i] : 0;
  MPI_Reduce(now, sum, operations, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (here != 0) return;
  printf("counts: %s %s", directory, name);
  for (int i = 0; i < operations; ++i) printf(" %s=%lld", operation[i], sum[i]);
  printf("\n");
  fflush(stdout);
}

// --- blocks

static void clear_blocks(void) { block_count = 0; }

static void add_block(long long offset, int len, int owner) {
  REQUIRE(block_count < most_blocks && offset + len <= most_bytes);
  blocks[block_count++] = (struct block){offset, len, owner};
}

// Cuts [begin, end) at random into blocks of at most `most` bytes, or more if there would be too
// many, each of a random rank or, with `holes`, of no rank.
static void add_random_blocks(long long begin, long long end, int most, bool holes) {
  const int least_most = (int)((end - begin) * 4 / most_blocks) + 1;
  if (most < least_most) most = least_most;
  while (begin < end) {
    int len = 1 + throw_below(most);
    if (len > end - begin) len = (int)(end - begin);
    const int owner = holes && throw_below(8) == 0 ? -1 : throw_below(ranks);
    add_block(begin, len, owner);
    begin += len;
  }
}

static unsigned char new_value(long long at) { return value_at(at * 31 + value_round); }

// New values for all blocks in the model; this rank's, contiguously, in `mine`.
static int fill_blocks(void) {
  int used = 0;
  ++value_round;
  for (int b = 0; b < block_count; ++b) {
    const struct block* block = &blocks[b];
    if (block->owner < 0) continue;
    for (int i = 0; i < block->len; ++i) model[block->offset + i] = new_value(block->offset + i);
    if (block->owner == here) {
      memcpy(mine + used, model + block->offset, (size_t)block->len);
      used += block->len;
    }
    if (block->offset + block->len > model_bytes) model_bytes = block->offset + block->len;
  }
  return used;
}

static void view_all(void) { view_native(fh, 0, MPI_BYTE, MPI_BYTE); }

static void view_blocks(void) {
  static int lens[most_blocks];
  static MPI_Aint offsets[most_blocks];
  MPI_Datatype type;
  int count = 0;
  for (int b = 0; b < block_count; ++b) {
    if (blocks[b].owner != here) continue;
    lens[count] = blocks[b].len;
    offsets[count++] = (MPI_Aint)blocks[b].offset;
  }
  if (count == 0) {
    view_all();
    return;
  }
  MPI_Type_create_hindexed(count, lens, offsets, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  view_native(fh, 0, MPI_BYTE, type);
  MPI_Type_free(&type);
}

static void write_one_by_one(bool later) {
  static MPI_Request requests[most_blocks];
  int count = 0, used = 0;
  view_all();
  for (int b = 0; b < block_count; ++b) {
    if (blocks[b].owner != here) continue;
    if (later) {
      EXPECT_OK(MPI_File_iwrite_at(fh, blocks[b].offset, mine + used, blocks[b].len, MPI_BYTE,
                                   &requests[count++]));
    } else {
      EXPECT_OK(MPI_File_write_at(fh, blocks[b].offset, mine + used, blocks[b].len, MPI_BYTE,
                                  MPI_STATUS_IGNORE));
    }
    used += blocks[b].len;
  }
  EXPECT_OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
}

static void write_blocks(enum way way) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int bytes = fill_blocks();
  if (way == one_by_one || way == one_by_one_later) {
    write_one_by_one(way == one_by_one_later);
    return;
  }
  view_blocks();
  if (way == together)
    EXPECT_OK(MPI_File_write_at_all(fh, 0, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  if (way == alone) EXPECT_OK(MPI_File_write_at(fh, 0, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  if (way == later_together)
    EXPECT_OK(MPI_File_iwrite_at_all(fh, 0, mine, bytes, MPI_BYTE, &request));
  if (way == later_alone) EXPECT_OK(MPI_File_iwrite_at(fh, 0, mine, bytes, MPI_BYTE, &request));
  EXPECT_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

// --- reading

static void check_all(const char* what) {
  MPI_Status status;
  view_all();
  for (int all = 0; all < 2; ++all) {
    int count = 0;
    memset(found, 0, (size_t)model_bytes + 1);
    EXPECT_OK((all ? MPI_File_read_at_all : MPI_File_read_at)(fh, 0, found, (int)model_bytes + 1,
                                                              MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != model_bytes) note_wrong("end of file", model_bytes, count, (int)model_bytes);
    for (long long i = 0; i < model_bytes; ++i)
      if (found[i] != model[i]) note_wrong(what, i, found[i], model[i]);
  }
  meet();
}

// Before any sync a rank finds its own writes.
static void check_own(void) {
  int used = 0, bytes = 0;
  for (int b = 0; b < block_count; ++b) bytes += blocks[b].owner == here ? blocks[b].len : 0;
  view_blocks();
  memset(found, 0, (size_t)bytes);
  EXPECT_OK(MPI_File_read_at(fh, 0, found, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int b = 0; b < block_count; ++b) {
    if (blocks[b].owner != here) continue;
    for (int i = 0; i < blocks[b].len; ++i, ++used)
      if (found[used] != model[blocks[b].offset + i])
        note_wrong("own byte", blocks[b].offset + i, found[used], model[blocks[b].offset + i]);
  }
}

static void settle(enum settle how) {
  if (how == nothing) {
    check_own();
    return;
  }
  if (how == by_sync) sync_barrier_sync(fh);
  if (how == by_reopening) {
    EXPECT_OK(MPI_File_close(&fh));
    open_file();
  }
  check_all(how == by_sync ? "after sync" : "after close and open");
}

// --- cases

static void begin_case(const char* name) {
  snprintf(path, sizeof path, "%s/%s", directory, name);
  memset(model, 0, sizeof model);
  model_bytes = 0;
  meet();
  read_counts(counts_before);
  meet();
  open_file();
}

static void end_case(const char* name) {
  char text[1100];
  EXPECT_OK(MPI_File_close(&fh));
  meet();
  print_counts(name);
  if (here != 0) return;
  snprintf(text, sizeof text, "%s/%s", models, name);
  FILE* file = fopen(text, "w");
  REQUIRE(file != NULL && fwrite(model, 1, (size_t)model_bytes, file) == (size_t)model_bytes &&
          fclose(file) == 0);
}

// Contiguous blocks of all ranks, whose ends share pages; then unaligned neighbours over them.
static void edges(const char* name, int bytes) {
  begin_case(name);
  clear_blocks();
  for (int r = 0; r < ranks; ++r) add_block((long long)r * bytes, bytes, r);
  write_blocks(together);
  clear_blocks();
  for (int r = 0; r < ranks; ++r)
    add_block((long long)r * bytes + bytes / 2, bytes - bytes / 3, (r + 1) % ranks);
  write_blocks(one_by_one);
  end_case(name);
}

static void random_blocks(const char* name, enum way way, int rounds) {
  begin_case(name);
  for (int i = 0; i < rounds; ++i) {
    clear_blocks();
    add_random_blocks(0, 100000, 6000, false);
    write_blocks(way);
    sync_barrier_sync(fh);  // the next round has other owners
  }
  settle(by_reopening);
  end_case(name);
}

static void columns(const char* name, enum way way, int rows) {
  begin_case(name);
  clear_blocks();
  for (int i = 0; i < rows * ranks; ++i) add_block(1000LL * i, 1000, i % ranks);
  write_blocks(way);
  settle(by_sync);
  end_case(name);
}

// In rank order, and in any order: each rank's piece has its own letter.
static void shared_pointer(const char* name) {
  enum { piece = 777 };
  begin_case(name);
  view_all();
  memset(mine, 'A' + here, piece);
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(MPI_File_write_ordered(fh, mine, piece, MPI_BYTE, MPI_STATUS_IGNORE));
    EXPECT_OK(MPI_File_write_shared(fh, mine, piece, MPI_BYTE, MPI_STATUS_IGNORE));
    sync_barrier_sync(fh);
    const long long at = 2LL * piece * ranks * i;
    EXPECT_OK(MPI_File_read_at(fh, at, found, 2 * piece * ranks, MPI_BYTE, MPI_STATUS_IGNORE));
    memcpy(model + at, found, (size_t)(2 * piece * ranks));
    MPI_Bcast(model + at, 2 * piece * ranks, MPI_BYTE, 0, MPI_COMM_WORLD);
    model_bytes = at + 2LL * piece * ranks;
    for (int k = 0; k < 2 * piece * ranks; ++k) {
      const int should = k < piece * ranks ? 'A' + k / piece : model[at + k / piece * piece];
      if (found[k] != should || should < 'A' || should >= 'A' + ranks)
        note_wrong("shared pointer", at + k, found[k], should);
    }
    meet();
  }
  end_case(name);
}

// The rank that has written a byte since the last sync; 0: none; else 1 + the rank.
static unsigned char unsynced[most_bytes];

// Whether another rank has written one of the blocks' bytes since the last sync. MPI leaves open
// which of two such writes the file has in the end (MPI 4.1, 14.6.1).
static bool blocks_conflict(void) {
  for (int b = 0; b < block_count; ++b)
    for (int i = 0; blocks[b].owner >= 0 && i < blocks[b].len; ++i) {
      const int by = unsynced[blocks[b].offset + i];
      if (by != 0 && by != 1 + blocks[b].owner) return true;
    }
  return false;
}

static void note_unsynced(void) {
  for (int b = 0; b < block_count; ++b)
    if (blocks[b].owner >= 0)
      memset(unsynced + blocks[b].offset, 1 + blocks[b].owner, (size_t)blocks[b].len);
}

static void note_synced(void) { memset(unsynced, 0, sizeof unsynced); }

static void random_rounds(const char* name, int rounds) {
  begin_case(name);
  note_synced();
  for (int i = 0; i < rounds; ++i) {
    const long long begin = throw_below(60000);
    clear_blocks();
    add_random_blocks(begin, begin + 1 + throw_below(60000), 1 + throw_below(9000), true);
    if (blocks_conflict()) {
      sync_barrier_sync(fh);
      note_synced();
    }
    write_blocks((enum way)throw_below(ways));
    note_unsynced();
    const enum settle how = (enum settle)throw_below(settles);
    settle(how);
    if (how != nothing) note_synced();
    meet();
    if (throw_below(4) == 0) {
      const long long cut = throw_below(120000);
      EXPECT_OK(MPI_File_set_size(fh, cut));
      if (cut < model_bytes) memset(model + cut, 0, (size_t)(model_bytes - cut));
      model_bytes = cut;
      check_all("after set_size");
      note_synced();
    }
  }
  end_case(name);
}

// In atomic mode all ranks find what one has written before, without a sync.
static void atomic_mode(const char* name) {
  begin_case(name);
  EXPECT_OK(MPI_File_set_atomicity(fh, 1));
  for (int i = 0; i < 2 * ranks; ++i) {
    clear_blocks();
    add_block(0, 40000 + 1000 * i, i % ranks);
    fill_blocks();
    if (i % ranks == here)
      EXPECT_OK(MPI_File_write_at(fh, 0, model, (int)model_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    meet();
    memset(found, 0, (size_t)model_bytes);
    EXPECT_OK(MPI_File_read_at(fh, 0, found, (int)model_bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    for (long long k = 0; k < model_bytes; ++k)
      if (found[k] != model[k]) note_wrong("atomic mode", k, found[k], model[k]);
    meet();
  }
  EXPECT_OK(MPI_File_set_atomicity(fh, 0));
  end_case(name);
}

// A mount whose locks do not exclude the other client: all ranks get an error.
static void no_atomic_mode(const char* name) {
  begin_case(name);
  EXPECT_CLASS(MPI_File_set_atomicity(fh, 1), MPI_ERR_UNSUPPORTED_OPERATION);
  end_case(name);
}

static void run_cases(bool all) {
  edges("edges-small", 1000);
  edges("edges-large", 300001);
  random_blocks("blocks-together", together, 6);
  random_blocks("blocks-alone", alone, 3);
  random_blocks("blocks-one-by-one", one_by_one, 2);
  columns("columns-together", together, 50);
  columns("columns-alone", alone, 50);
  columns("columns-one-by-one", one_by_one, 20);
  if (!all) return;
  shared_pointer("shared-pointer");
  random_rounds("random", 10);
}

int main(int argc, char** argv) {
  long long all = 0;
  start_test(&argc, &argv, 3600);  // the clock of a guest may run fast
  REQUIRE(argc > 5 && argc % 3 == 0);
  const unsigned long long seed = strtoull(argv[1], NULL, 10);
  for (int i = 3; i < argc; i += 3) {
    directory = argv[i], models = argv[i + 1], striped = strcmp(argv[i + 2], "striped") == 0;
    dice = seed;
    run_cases(strcmp(argv[2], "all") == 0);
    if (strcmp(argv[i + 2], "nolock") == 0)
      no_atomic_mode("no-atomic-mode");
    else if (strcmp(argv[2], "all") == 0)
      atomic_mode("atomic-mode");
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
