/* Many small pieces with gaps between them, written independently and collectively: random types,
 * every rank in its own columns, some columns left out; against an array of bytes. They go through
 * a mapping of the file, or not (hint shima_map_writes).
 *
 * RANKS: 1 3
 * VARIANTS: striped
 */
#include <string.h>

#include "expect.h"

enum { slot_bytes = 24, rows = 3000, rounds = 12 };

static unsigned long long state = 1; /* the same on all ranks */
static int draw(int below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (unsigned)below);
}

/* A row has a slot of each rank and one of none. In its slot a rank writes `len` bytes from byte
 * `begin` on. */
struct Shape {
  int row_bytes, begin, len, first_row, count;
};

static struct Shape draw_shape(void) {
  struct Shape shape;
  shape.row_bytes = slot_bytes * (ranks + 1);
  shape.begin = draw(slot_bytes);
  shape.len = 1 + draw(slot_bytes - shape.begin);
  shape.first_row = draw(rows / 2);
  shape.count = 1 + draw(rows / 2);
  return shape;
}

static void view_of(MPI_File fh, const struct Shape* shape) {
  MPI_Datatype piece, tile;
  MPI_Type_contiguous(shape->len, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, shape->row_bytes, &tile);
  MPI_Type_commit(&tile);
  view_native(fh,
              (MPI_Offset)shape->first_row * shape->row_bytes + here * slot_bytes + shape->begin,
              MPI_BYTE, tile);
  MPI_Type_free(&piece);
  MPI_Type_free(&tile);
}

static unsigned char byte_of(int round, int rank, int row, int k) {
  return (unsigned char)(1 + (round * 31 + rank * 7 + row * 3 + k) % 255);
}

static void put_in_model(unsigned char* model, const struct Shape* shape, int round) {
  for (int rank = 0; rank < ranks; ++rank)
    for (int row = 0; row < shape->count; ++row)
      for (int k = 0; k < shape->len; ++k)
        model[(size_t)(shape->first_row + row) * (size_t)shape->row_bytes +
              (size_t)(rank * slot_bytes + shape->begin + k)] = byte_of(round, rank, row, k);
}

static void write_shape(MPI_File fh, const struct Shape* shape, int round, int way) {
  const int bytes = shape->count * shape->len;
  unsigned char* const data = malloc(2 * (size_t)bytes);
  MPI_Datatype memory = MPI_BYTE;
  const int spread = way & 1 ? 2 : 1; /* every second byte of memory */
  for (int row = 0; row < shape->count; ++row)
    for (int k = 0; k < shape->len; ++k)
      data[spread * (row * shape->len + k)] = byte_of(round, here, row, k);
  if (spread == 2) {
    MPI_Type_create_resized(MPI_BYTE, 0, 2, &memory);
    MPI_Type_commit(&memory);
  }
  view_of(fh, shape);
  if (way & 2)
    EXPECT_OK(MPI_File_write_at_all(fh, 0, data, bytes, memory, MPI_STATUS_IGNORE));
  else
    EXPECT_OK(MPI_File_write_at(fh, 0, data, bytes, memory, MPI_STATUS_IGNORE));
  if (spread == 2) MPI_Type_free(&memory);
  free(data);
}

static void check_file(const char* name, int amode, const char* hint) {
  const size_t all_bytes = (size_t)rows * slot_bytes * (size_t)(ranks + 1);
  unsigned char* const model = calloc(all_bytes, 1);
  size_t end = 0;
  MPI_Info info = info_with("shima_map_writes", hint);
  MPI_File fh;
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, name, amode | MPI_MODE_CREATE, info, &fh));
  for (int round = 0; round < rounds; ++round) {
    const struct Shape shape = draw_shape();
    write_shape(fh, &shape, round, draw(4));
    put_in_model(model, &shape, round);
    const size_t reached = (size_t)(shape.first_row + shape.count - 1) * (size_t)shape.row_bytes +
                           (size_t)((ranks - 1) * slot_bytes + shape.begin + shape.len);
    if (reached > end) end = reached;
    MPI_Barrier(MPI_COMM_WORLD); /* the next round may write the same bytes */
  }
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Info_free(&info);
  if (here == 0) expect_stored(name, 0, model, end);
  MPI_Barrier(MPI_COMM_WORLD);
  free(model);
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  check_file("mapped.out", MPI_MODE_RDWR, "automatic");
  check_file("written.out", MPI_MODE_WRONLY, "automatic");
  check_file("called.out", MPI_MODE_RDWR, "disable");
  return end_test();
}
