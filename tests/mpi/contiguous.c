/* Random contiguous accesses at explicit offsets and at the individual pointer against an array of
 * bytes: predefined types, which go to the file directly, and derived ones, which do not; views
 * with displacements, larger etypes and gaps; also in atomic mode, and at and behind the end of the
 * file.
 *
 * RANKS: 1 2
 * VARIANTS: striped
 */
#include <string.h>

#include "expect.h"

enum { file_bytes = 40000, most_bytes = 3000, accesses = 3000 };

/* Of one rank's file. */
struct Model {
  unsigned char bytes[2 * file_bytes];
  MPI_Offset end;
};

struct Look {
  MPI_Datatype type; /* of memory */
  int size;
};

static unsigned long long state;
static int draw(int below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (unsigned)below);
}

/* The place of a byte of the view. */
static MPI_Offset place(MPI_Offset displacement, int gap, MPI_Offset byte) {
  return displacement + (gap == 0 ? byte : byte / 8 * (8 + gap) + byte % 8);
}

static void put_pointer(MPI_File fh, MPI_Offset first) {
  MPI_Offset at = -1;
  EXPECT_OK(MPI_File_get_position(fh, &at));
  if (at != first) EXPECT_OK(MPI_File_seek(fh, first, MPI_SEEK_SET));
}

static void expect_pointer(MPI_File fh, MPI_Offset expected) {
  MPI_Offset at = -1;
  EXPECT_OK(MPI_File_get_position(fh, &at));
  EXPECT_EQ(at, expected);
}

static void write_data(MPI_File fh, MPI_Offset first, const void* data, const struct Look* look,
                       int count, int etype_bytes, MPI_Status* status) {
  if (draw(2)) {
    EXPECT_OK(MPI_File_write_at(fh, first, data, count, look->type, status));
    return;
  }
  put_pointer(fh, first);
  EXPECT_OK(MPI_File_write(fh, data, count, look->type, status));
  expect_pointer(fh, first + count * look->size / etype_bytes);
}

static void read_data(MPI_File fh, MPI_Offset first, void* data, const struct Look* look, int count,
                      int etype_bytes, MPI_Status* status) {
  if (draw(2)) {
    EXPECT_OK(MPI_File_read_at(fh, first, data, count, look->type, status));
    return;
  }
  put_pointer(fh, first);
  EXPECT_OK(MPI_File_read(fh, data, count, look->type, status));
  expect_pointer(fh, first + count * look->size / etype_bytes);
}

static void write_some(MPI_File fh, struct Model* model, MPI_Offset displacement, int gap,
                       MPI_Offset first, const struct Look* look, int count, int etype_bytes) {
  static unsigned char data[most_bytes + 16];
  MPI_Status status;
  for (int i = 0; i < count * look->size; ++i) data[i] = (unsigned char)draw(256);
  write_data(fh, first, data, look, count, etype_bytes, &status);
  expect_items(&status, look->type, count);
  for (int i = 0; i < count * look->size; ++i) {
    const MPI_Offset at = place(displacement, gap, first * etype_bytes + i);
    model->bytes[at] = data[i];
    if (at >= model->end) model->end = at + 1;
  }
}

static void read_some(MPI_File fh, const struct Model* model, MPI_Offset displacement, int gap,
                      MPI_Offset first, const struct Look* look, int count, int etype_bytes) {
  static unsigned char data[most_bytes + 16];
  MPI_Status status;
  int got = 0;
  int bytes = -1;
  memset(data, 0xee, sizeof data);
  while (got < count * look->size &&
         place(displacement, gap, first * etype_bytes + got) < model->end)
    ++got;
  read_data(fh, first, data, look, count, etype_bytes, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  EXPECT_EQ(bytes, got);
  for (int i = 0; i < got; ++i)
    EXPECT_EQ(data[i], model->bytes[place(displacement, gap, first * etype_bytes + i)]);
  for (int i = count * look->size; i < most_bytes + 16; ++i) EXPECT_EQ(data[i], 0xee);
}

static void set_random_view(MPI_File fh, MPI_Offset* displacement, int* gap, int* etype_bytes) {
  MPI_Datatype block, tile;
  const MPI_Datatype etypes[] = {MPI_BYTE, MPI_INT, MPI_DOUBLE};
  const int which = draw(3);
  *displacement = draw(50);
  *gap = draw(3) == 0 ? 1 + draw(9) : 0;
  *etype_bytes = which == 0 ? 1 : which == 1 ? 4 : 8;
  MPI_Type_contiguous(8 / *etype_bytes, etypes[which], &block);
  MPI_Type_create_resized(block, 0, 8 + *gap, &tile);
  MPI_Type_commit(&tile);
  view_native(fh, *displacement, etypes[which], *gap == 0 && draw(2) ? etypes[which] : tile);
  MPI_Type_free(&block);
  MPI_Type_free(&tile);
}

static void access_at_random(MPI_File fh, struct Model* model, const struct Look* looks) {
  MPI_Offset displacement = 0;
  int gap = 0;
  int etype_bytes = 1;
  for (int i = 0; i < accesses; ++i) {
    if (draw(100) == 0) set_random_view(fh, &displacement, &gap, &etype_bytes);
    const struct Look* look = &looks[draw(5)];
    const int count = 1 + draw((draw(4) == 0 ? most_bytes : 40) / look->size);
    MPI_Offset first = draw(file_bytes / (gap == 0 ? 1 : 3)) / etype_bytes;
    MPI_Offset pointer = 0;
    EXPECT_OK(MPI_File_get_position(fh, &pointer));
    if (draw(2) && pointer * etype_bytes < file_bytes / 3)
      first = pointer; /* one after the other */
    if (draw(300) == 0) EXPECT_OK(MPI_File_set_atomicity(fh, draw(2)));
    if (count * look->size % etype_bytes != 0) continue; /* whole etypes only */
    if (draw(2))
      write_some(fh, model, displacement, gap, first, look, count, etype_bytes);
    else
      read_some(fh, model, displacement, gap, first, look, count, etype_bytes);
  }
}

int main(int argc, char** argv) {
  static struct Model model;
  struct Look looks[5] = {{MPI_BYTE, 1}, {MPI_SHORT, 2}, {MPI_DOUBLE, 8}};
  char name[40];
  start_test(&argc, &argv, 100);
  state = (unsigned long long)here + 1;
  MPI_Type_contiguous(3, MPI_BYTE, &looks[3].type);
  MPI_Type_contiguous(4, MPI_INT, &looks[4].type);
  looks[3].size = 3, looks[4].size = 16;
  for (int i = 3; i < 5; ++i) MPI_Type_commit(&looks[i].type);
  snprintf(name, sizeof name, "contiguous-%d.out", here);
  MPI_File fh = open_self(name, MPI_MODE_CREATE | MPI_MODE_RDWR);
  access_at_random(fh, &model, looks);
  EXPECT_EQ(file_size_of(fh), model.end);
  EXPECT_OK(MPI_File_close(&fh));
  expect_stored(name, 0, model.bytes, (size_t)model.end);
  for (int i = 3; i < 5; ++i) MPI_Type_free(&looks[i].type);
  return end_test();
}
