/* MPI-4.1, section 14.2.8: hints. They never change the bytes of a file, unknown ones and bad
 * values are ignored, hints that are not named stay, and every returned info belongs to the caller.
 *
 * RANKS: 1 2 4
 * ENV: SHIMA_LOG=error
 */
#include "mpi/expect.h"

/* The hints from get_info as text: "key=value\n" for each key. */
static void tell_hints(MPI_File fh, char* text, size_t room) {
  MPI_Info info = MPI_INFO_NULL;
  char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
  int keys = -1, found;
  EXPECT_OK(MPI_File_get_info(fh, &info));
  EXPECT(info != MPI_INFO_NULL);
  MPI_Info_get_nkeys(info, &keys);
  text[0] = '\0';
  for (int i = 0; i < keys; ++i) {
    MPI_Info_get_nthkey(info, i, key);
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    EXPECT(found);
    const size_t used = strlen(text);
    snprintf(text + used, room - used, "%s=%s\n", key, value);
  }
  MPI_Info_free(&info);
}

/* Each call gives a new object: changing or freeing one changes no hint. */
static void get_info_is_new(void) {
  char before[4000], after[4000];
  MPI_Info first, second;
  MPI_File fh = open_fresh("info.out");
  tell_hints(fh, before, sizeof before);
  EXPECT_OK(MPI_File_get_info(fh, &first));
  EXPECT_OK(MPI_File_get_info(fh, &second));
  MPI_Info_set(first, "cb_nodes", "12345");
  MPI_Info_set(first, "mine", "alone");
  MPI_Info_free(&first);
  MPI_Info_delete(second, "cb_nodes");
  MPI_Info_free(&second);
  tell_hints(fh, after, sizeof after);
  EXPECT(strcmp(before, after) == 0);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Setting the hints in effect again changes nothing; neither does an empty info or none. */
static void hints_given_back_stay(void) {
  char before[4000], after[4000];
  MPI_Info info;
  MPI_File fh = open_fresh("info.out");
  tell_hints(fh, before, sizeof before);
  EXPECT_OK(MPI_File_get_info(fh, &info));
  EXPECT_OK(MPI_File_set_info(fh, info));
  tell_hints(fh, after, sizeof after);
  EXPECT(strcmp(before, after) == 0);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", info));
  MPI_Info_free(&info);
  MPI_Info_create(&info);
  EXPECT_OK(MPI_File_set_info(fh, info));
  MPI_Info_free(&info);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  tell_hints(fh, after, sizeof after);
  EXPECT(strcmp(before, after) == 0);
  EXPECT_OK(MPI_File_close(&fh));
}

/* The reserved hints with values of their types, and keys that are not hints. */
static const char* const reserved[][2] = {
    {"access_style", "read_once,write_mostly"},
    {"collective_buffering", "true"},
    {"cb_block_size", "4096"},
    {"cb_buffer_size", "1048576"},
    {"cb_nodes", "2"},
    {"chunked", "100,100"},
    {"chunked_item", "8"},
    {"chunked_size", "10,10"},
    {"filename", "other.out"},
    {"file_perm", "0600"},
    {"io_node_list", "*"},
    {"nb_proc", "8"},
    {"num_io_nodes", "1"},
    {"striping_factor", "4"},
    {"striping_unit", "65536"},
};
static const char* const nonsense[][2] = {
    {"cb_nodes", "many"},
    {"cb_buffer_size", "-1"},
    {"striping_unit", ""},
    {"access_style", "sideways"},
    {"collective_buffering", "perhaps"},
    {"file_perm", "rw"},
    {"no such key", "no such value"},
    {"striping_factor", "99999999999999999999"},
    {"romio_cb_write", "1"},
};

static MPI_Info info_of(const char* const (*hints)[2], size_t count) {
  MPI_Info info;
  MPI_Info_create(&info);
  for (size_t i = 0; i < count; ++i)
    if (hints[i][1][0]) MPI_Info_set(info, hints[i][0], hints[i][1]);
  return info;
}

/* Hints are advice: for any value, the calls succeed. Reserved ones are never errors. */
static void any_hint_is_accepted(void) {
  char before[4000], after[4000];
  MPI_File fh;
  MPI_Info good = info_of(reserved, sizeof reserved / sizeof reserved[0]);
  MPI_Info bad = info_of(nonsense, sizeof nonsense / sizeof nonsense[0]);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "any.out", MPI_MODE_CREATE | MPI_MODE_RDWR, good, &fh));
  tell_hints(fh, before, sizeof before);
  EXPECT_OK(MPI_File_set_info(fh, bad));
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", bad));
  tell_hints(fh, after, sizeof after);
  EXPECT_OK(MPI_File_set_info(fh, good));
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "any.out", MPI_MODE_RDWR, bad, &fh));
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Barrier(MPI_COMM_WORLD);
  if (here == 0) EXPECT_OK(MPI_File_delete("any.out", good));
  MPI_Info_free(&good);
  MPI_Info_free(&bad);
  EXPECT(access("other.out", F_OK) != 0);
}

/* Hints that the standard does not require to be the same may differ or be missing on some ranks.
 */
static void ranks_may_differ(void) {
  MPI_File fh;
  MPI_Info info = here % 2 ? MPI_INFO_NULL : info_with("access_style", "sequential");
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "any.out", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  EXPECT_OK(MPI_File_write_at_all(fh, here, "x", 1, MPI_CHAR, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_close(&fh));
#if MPI_VERSION >= 3
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "any.out", MPI_MODE_RDWR, MPI_INFO_ENV, &fh));
  EXPECT_OK(MPI_File_close(&fh));
#endif
}

enum { each = 300 };

static int value_of(int rank, int i) { return rank * each + i + 1; }

/* Interleaved pieces of three ints, collectively and independently, through a view and back. */
static void write_with(MPI_Info info) {
  int data[each], found[each];
  MPI_Datatype piece, type;
  MPI_File fh;
  MPI_Type_contiguous(3, MPI_INT, &piece);
  MPI_Type_create_resized(piece, 0, 3 * (MPI_Aint)sizeof(int) * ranks, &type);
  MPI_Type_commit(&type);
  EXPECT_OK(MPI_File_open(MPI_COMM_WORLD, "same.out", MPI_MODE_CREATE | MPI_MODE_RDWR, info, &fh));
  EXPECT_OK(MPI_File_set_size(fh, 0));
  view_native(fh, 3 * (MPI_Offset)sizeof(int) * here, MPI_INT, type);
  for (int i = 0; i < each; ++i) data[i] = value_of(here, i), found[i] = 0;
  EXPECT_OK(MPI_File_write_all(fh, data, each / 2, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(MPI_File_write(fh, data + each / 2, each / 2, MPI_INT, MPI_STATUS_IGNORE));
  EXPECT_OK(
      MPI_File_read_at_all(fh, each / 3, found + each / 3, each / 3, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = each / 3; i < 2 * each / 3; ++i) EXPECT_EQ(found[i], data[i]);
  EXPECT_OK(MPI_File_close(&fh));
  MPI_Type_free(&piece);
  MPI_Type_free(&type);
}

/* Hints do not change the semantics: the bytes are the same with each of them. */
static void hints_do_not_change_the_file(void) {
  const char* const hints[][2] = {
      {"collective_buffering", "true"},
      {"collective_buffering", "false"},
      {"cb_nodes", "1"},
      {"cb_buffer_size", "7"},
      {"romio_ds_read", "enable"},
      {"romio_ds_read", "disable"},
      {"ind_rd_buffer_size", "1"},
      {"romio_cb_read", "disable"},
      {"striping_unit", "3"},
      {"cb_nodes", "1000"},
      {"access_style", "random"},
  };
  for (size_t h = 0; h < sizeof hints / sizeof hints[0]; ++h) {
    MPI_Info info = info_with(hints[h][0], hints[h][1]);
    write_with(info);
    MPI_Info_free(&info); /* the file keeps no reference to it */
    if (here == 0) {
      long long size;
      unsigned char* bytes = contents_of("same.out", &size);
      EXPECT_EQ(size, each * ranks * (int)sizeof(int));
      for (int i = 0; i < each * ranks; ++i) {
        const int piece = i / 3;
        EXPECT_EQ(((int*)bytes)[i], value_of(piece % ranks, piece / ranks * 3 + i % 3));
      }
      free(bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  get_info_is_new();
  hints_given_back_stay();
  any_hint_is_accepted();
  ranks_may_differ();
  hints_do_not_change_the_file();
  return end_test();
}
