/* Writes whose memory type names the same bytes several times, which MPI allows: by lists with
 * repeats in any order, by a vector with stride 0, and both nested; by collective calls of each
 * strategy, alone and nonblocking. Rank 0 compares the whole file with what the ranks have named.
 *
 * RANKS: 1 4
 * VARIANTS: striped direct
 * ENV: SHIMA_LOG=error
 */
#include "expect.h"

enum { pieces = 700, longest = 11, memory_bytes = 600, group = 8, most = 4 * pieces * longest };

static unsigned char memory_at(int rank, int i) {
  return (unsigned char)(1 + (rank * 61 + i * 37) % 255);
}

/* A type, and the bytes of memory that it names, in order. */
struct named {
  MPI_Datatype type;
  int count;
  int bytes[most];
};

static void name_piece(struct named* n, int begin, int len) {
  for (int j = 0; j < len; ++j) n->bytes[n->count++] = begin + j;
}

static void make_list(int rank, struct named* n) {
  static int lens[pieces];
  static MPI_Aint places[pieces];
  unsigned random = 12345u + (unsigned)rank;
  n->count = 0;
  for (int i = 0; i < pieces; ++i) {
    random = random * 1103515245u + 12345u;
    lens[i] = 1 + (int)(random >> 16) % longest;
    places[i] = (MPI_Aint)(random >> 8) % (memory_bytes - longest);
    name_piece(n, (int)places[i], lens[i]);
  }
  MPI_Type_create_hindexed(pieces, lens, places, MPI_BYTE, &n->type);
}

static void make_same_block(int rank, struct named* n) {
  const int begin = 5 + rank, len = 48;
  MPI_Datatype same;
  MPI_Aint at = begin;
  n->count = 0;
  for (int i = 0; i < pieces / 10; ++i) name_piece(n, begin, len);
  MPI_Type_create_hvector(pieces / 10, len, 0, MPI_BYTE, &same);
  MPI_Type_create_hindexed_block(1, 1, &at, same, &n->type);
  MPI_Type_free(&same);
}

/* Three blocks, the list in its place, and again with 13 bytes between the elements. */
static void make_nested(int rank, struct named* n) {
  struct named* const list = malloc(sizeof *list);
  make_list(rank, list);
  n->count = 0;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < list->count; ++k) n->bytes[n->count++] = i * 13 + list->bytes[k];
  MPI_Type_create_hvector(3, 1, 13, list->type, &n->type);
  MPI_Type_free(&list->type);
  free(list);
}

static void (*const makers[])(int, struct named*) = {make_list, make_same_block, make_nested};

/* Group k of a rank's bytes is at (k * ranks + rank) * group. */
static void view_groups(MPI_File fh) {
  MPI_Datatype part, type;
  MPI_Type_contiguous(group, MPI_BYTE, &part);
  MPI_Type_create_resized(part, 0, (MPI_Aint)group * ranks, &type);
  MPI_Type_commit(&type);
  view_native(fh, (MPI_Offset)here * group, MPI_BYTE, type);
  MPI_Type_free(&part);
  MPI_Type_free(&type);
}

static void expect_file(const char* name, void (*make)(int, struct named*)) {
  struct named* const n = malloc(sizeof *n);
  unsigned char* const found = malloc(most + group);
  for (int rank = 0; rank < ranks; ++rank) {
    make(rank, n);
    MPI_Type_free(&n->type);
    for (int k = 0; k * group < n->count; ++k)
      EXPECT(stored_read(name, found + k * group, group, ((MPI_Offset)k * ranks + rank) * group) >
             0);
    for (int i = 0; i < n->count; ++i) EXPECT_EQ(found[i], memory_at(rank, n->bytes[i]));
  }
  free(found);
  free(n);
}

static void write_in(int way, MPI_File fh, const void* memory, const struct named* mine) {
  const MPI_Datatype type = mine->type;
  MPI_Status status;
  MPI_Request request;
  if (way == 0) EXPECT_OK(MPI_File_write_at_all(fh, 0, memory, 1, type, &status));
  if (way == 1) EXPECT_OK(MPI_File_write_at(fh, 0, memory, 1, type, &status));
  if (way == 2) EXPECT_OK(MPI_File_iwrite_at_all(fh, 0, memory, 1, type, &request));
  if (way == 3) EXPECT_OK(MPI_File_iwrite_at(fh, 0, memory, 1, type, &request));
  if (way >= 2) EXPECT_OK(MPI_Wait(&request, &status));
  expect_items(&status, MPI_BYTE, mine->count);
}

static void write_by(const char* strategy, void (*make)(int, struct named*), int way) {
  static unsigned char memory[memory_bytes + 64];
  struct named* const mine = malloc(sizeof *mine);
  MPI_Info info;
  MPI_File fh;
  for (int i = 0; i < (int)sizeof memory; ++i) memory[i] = memory_at(here, i);
  make(here, mine);
  MPI_Type_commit(&mine->type);
  MPI_Info_create(&info);
  MPI_Info_set(info, "shima_collective", strategy);
  EXPECT_OK(
      MPI_File_open(MPI_COMM_WORLD, "repeats.out", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  EXPECT_OK(MPI_File_set_size(fh, 0));
  view_groups(fh);
  write_in(way, fh, memory, mine);
  EXPECT_OK(MPI_File_close(&fh));
  for (int i = 0; i < (int)sizeof memory; ++i) EXPECT_EQ(memory[i], memory_at(here, i));
  if (here == 0) expect_file("repeats.out", make);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Info_free(&info);
  MPI_Type_free(&mine->type);
  free(mine);
}

int main(int argc, char** argv) {
  static const char* const strategies[] = {"auto", "disk_directed", "two_phase", "subgroup",
                                           "independent"};
  start_test(&argc, &argv, 120);
  for (int m = 0; m < 3; ++m) {
    for (int s = 0; s < 5; ++s)
      for (int way = 0; way < 4; way += 2) write_by(strategies[s], makers[m], way);
    write_by("auto", makers[m], 1);
    write_by("auto", makers[m], 3);
  }
  return end_test();
}
