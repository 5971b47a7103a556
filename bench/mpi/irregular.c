// irregular: pieces of 1 to 12 doubles, dealt at random over the ranks, in one collective call.
//
// The pieces lie one after the other in the file; each belongs to a random rank, whose filetype
// lists its own. `list` makes one hindexed type of them, `variables` a struct of 400 hindexed
// types, as a library makes that flushes 400 variables at once. Each call runs twice with the same
// types. The file is in the page cache.
//
//     irregular FILE list|variables PIECES      prints one JSON object (times in ns a piece)
//
// `grown_kib` is the memory that the first call took, `description_kib` the size of the lists of
// lengths and offsets: both of all ranks.

#include "irregular.h"

#include <string.h>

static MPI_Datatype list_type(const struct pieces* own, long first, long end) {
  MPI_Datatype type;
  check(MPI_Type_create_hindexed((int)(end - first), own->lens + first, own->offsets + first,
                                 MPI_DOUBLE, &type),
        "hindexed");
  return type;
}

static MPI_Datatype variables_type(const struct pieces* own) {
  static int ones[variable_count];
  static MPI_Aint zeros[variable_count];
  MPI_Datatype types[variable_count], all;
  for (int v = 0; v < variable_count; ++v) {
    ones[v] = 1;
    types[v] = list_type(own, own->starts[v], own->starts[v + 1]);
  }
  check(MPI_Type_create_struct(variable_count, ones, zeros, types, &all), "struct");
  for (int v = 0; v < variable_count; ++v) MPI_Type_free(&types[v]);
  return all;
}

static long kib_of(const char* file, const char* field) {
  char line[256];
  long kib = 0;
  FILE* facts = fopen(file, "r");
  while (facts && fgets(line, sizeof line, facts))
    if (strncmp(line, field, strlen(field)) == 0) kib = atol(line + strlen(field));
  if (facts) fclose(facts);
  return kib;
}

// Pages that ranks share count once in the sum over the ranks.
static long memory_kib(void) { return kib_of("/proc/self/smaps_rollup", "Pss:"); }

// Lets the kernel note the peak of resident memory anew.
static void forget_peak(void) {
  FILE* refs = fopen("/proc/self/clear_refs", "w");
  if (refs) fputs("5", refs), fclose(refs);
}

// Since then: what is there now, and what was there in between.
static long grown_kib(long before_kib) {
  const long freed_kib =
      kib_of("/proc/self/status", "VmHWM:") - kib_of("/proc/self/status", "VmRSS:");
  meet();
  return memory_kib() - before_kib + freed_kib;
}

static void describe_memory(char* text, size_t bytes, long grown_kib, const struct pieces* own) {
  const long list_bytes =
      sum_over_ranks(own->count * (long)(sizeof *own->lens + sizeof *own->offsets));
  snprintf(text, bytes, "\"grown_kib\":%ld,\"description_kib\":%ld,", sum_over_ranks(grown_kib),
           list_bytes / 1024);
}

// Seconds of the slowest rank.
static double timed_call(MPI_File file, bool write, void* data, long doubles) {
  MPI_Status status;
  double slowest = 0;
  meet();
  const double started = MPI_Wtime();
  check(write ? MPI_File_write_at_all(file, 0, data, (int)doubles, MPI_DOUBLE, &status)
              : MPI_File_read_at_all(file, 0, data, (int)doubles, MPI_DOUBLE, &status),
        write ? "write_at_all" : "read_at_all");
  const double mine = MPI_Wtime() - started;
  meet();  // a rank that waits in MPI_Allreduce takes the core from those that have not ended
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static MPI_File open_with_view(const char* path, MPI_Datatype type) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
        "open");
  check(MPI_File_set_view(file, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL), "set_view");
  return file;
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) fail("usage: irregular FILE list|variables PIECES");
  const long total = atol(argv[3]);
  const struct pieces own = deal(total, rank, ranks);
  MPI_Datatype type =
      strcmp(argv[2], "list") == 0 ? list_type(&own, 0, own.count) : variables_type(&own);
  check(MPI_Type_commit(&type), "commit");
  const size_t bytes = (size_t)own.doubles * sizeof(double);
  uint64_t *data = malloc(bytes), *back = malloc(bytes);
  fill(&own, data);
  memset(back, 1, bytes);

  MPI_File file = open_with_view(argv[1], type);
  char memory[128];
  meet();
  const long before_kib = memory_kib();
  meet();
  forget_peak();
  double ns[4];
  long wrong = 0;
  for (int i = 0; i < 4; ++i) {
    const bool write = i < 2;
    ns[i] = timed_call(file, write, write ? data : back, own.doubles) * 1e9 / (double)total;
    if (i == 0) describe_memory(memory, sizeof memory, grown_kib(before_kib), &own);
    if (!write) wrong += memcmp(data, back, bytes) != 0;
    memset(back, 0, bytes);
  }
  check(MPI_File_close(&file), "close");
  wrong = sum_over_ranks(wrong);
  if (rank == 0) {
    unlink(argv[1]);
    report_irregular("irregular", ns, wrong, memory);
  }
  MPI_Finalize();
  return 0;
}
