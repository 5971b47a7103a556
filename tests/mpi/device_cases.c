/* Buffers in device memory: copies that overlap with the file's I/O, copies that fail, the end of
 * the file, external32 and registered representations, datatypes over host and device memory.
 *
 * RANKS: 1 3
 * CFLAGS: -rdynamic
 * ENV: SHIMA_LOG=error
 */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "expect.h"
#include "simulated_gpu.h"

enum { PAGE = 4096 };

/* Records the system calls on files in the log of the copies. */
ssize_t pwrite(int fd, const void* data, size_t len, off_t offset) {
  sim_note('W');
  return syscall(SYS_pwrite64, fd, data, len, offset);
}
ssize_t pread(int fd, void* data, size_t len, off_t offset) {
  sim_note('R');
  return syscall(SYS_pread64, fd, data, len, offset);
}

static char* device;
static char* bytes; /* of the device */

static MPI_File open_with(const char* name, MPI_Comm comm, const char* buffer_size) {
  MPI_File fh;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "shima_device_buffer_size", buffer_size);
  EXPECT_OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                          info, &fh));
  MPI_Info_free(&info);
  return fh;
}

static void fill(long long seed) {
  for (int i = 0; i < 20 * PAGE; ++i) bytes[i] = (char)value_at(i + seed);
}

static void expect_text(const char* found, const char* expected, int line) {
  char text[300];
  if (strcmp(found, expected) == 0) return;
  snprintf(text, sizeof text, "the order of calls is %.120s, not %.120s", found, expected);
  give_up(text, line);
}

/* Two halves of one page: the copy of the next piece starts before a piece is written (CCSW and not
 * CSWCSW), and a piece is read before the copy of the one before is waited for (RCRC). */
static void copies_overlap(void) {
  MPI_File fh = open_with(here == 0 ? "a0" : here == 1 ? "a1" : "a2", MPI_COMM_SELF, "8192");
  fill(0);
  sim_clear_log();
  EXPECT_OK(MPI_File_write_at(fh, 0, device, 5 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_text(sim_log, "CCSWCSWCSWCSWSW", __LINE__);
  memset(bytes, 0, 5 * PAGE);
  sim_clear_log();
  EXPECT_OK(MPI_File_read_at(fh, 0, device, 5 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_text(sim_log, "RCRCSRCSRCSRCSS", __LINE__);
  for (int i = 0; i < 5 * PAGE; ++i) EXPECT_EQ((unsigned char)bytes[i], value_at(i));
  EXPECT_EQ(sim_open_streams, 1);
  EXPECT_OK(MPI_File_close(&fh));
  EXPECT_EQ(sim_open_streams, 0);
}

/* One copy per row would be 100 copies. */
static void regular_pieces_are_one_copy(void) {
  MPI_Datatype column;
  MPI_File fh = open_with("columns", MPI_COMM_WORLD, "1M");
  MPI_Type_vector(100, 8, 64, MPI_BYTE, &column);
  MPI_Type_commit(&column);
  sim_clear_log();
  EXPECT_OK(MPI_File_write_at(fh, 800 * here, device, 1, column, MPI_STATUS_IGNORE));
  EXPECT_EQ(strspn(sim_log, "C"), 1);
  MPI_Type_free(&column);
  EXPECT_OK(MPI_File_close(&fh));
}

static void reads_stop_at_the_end_of_the_file(void) {
  const MPI_Offset end = 3 * PAGE + 100;
  MPI_File fh = open_with("end", MPI_COMM_WORLD, "8192");
  MPI_Status status;
  MPI_Count count = 0;
  fill(5);
  if (here == 0) EXPECT_OK(MPI_File_write_at(fh, 0, device, (int)end, MPI_BYTE, &status));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int collective = 0; collective < 2; ++collective) {
    memset(bytes, 0x5a, 20 * PAGE);
    EXPECT_OK(collective ? MPI_File_read_at_all(fh, 0, device, 10 * PAGE, MPI_BYTE, &status)
                         : MPI_File_read_at(fh, 0, device, 10 * PAGE, MPI_BYTE, &status));
    MPI_Get_elements_x(&status, MPI_BYTE, &count);
    EXPECT_EQ(count, end);
    for (int i = 0; i < 20 * PAGE; ++i)
      EXPECT_EQ((unsigned char)bytes[i], i < end ? value_at(i + 5) : 0x5a);
  }
  EXPECT_OK(MPI_File_close(&fh));
}

/* One rank's copy fails at each point in turn: all get the error, and the file is usable after. */
static void failures_reach_all_ranks(void) {
  const int faulty = ranks - 1;
  MPI_File fh = open_with("failures", MPI_COMM_WORLD, "8192");
  const MPI_Offset at = (MPI_Offset)here * 4 * PAGE;
  fill(9);
  EXPECT_OK(MPI_File_write_at_all(fh, at, device, 4 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int point = 0; point < 4; ++point) {
    for (int kind = 0; kind < 4; ++kind) {
      int* const countdown = kind % 2 == 0 ? &sim_copies_until_failure : &sim_waits_until_failure;
      MPI_Request request;
      int result = MPI_SUCCESS;
      if (here == faulty) *countdown = point;
      if (kind < 2)
        result = MPI_File_write_at_all(fh, at, device, 4 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE);
      else if (point % 2 == 0)
        result = MPI_File_read_at_all(fh, at, device, 4 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE);
      else {
        EXPECT_OK(MPI_File_iread_at_all(fh, at, device, 4 * PAGE, MPI_BYTE, &request));
        result = MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      EXPECT_CLASS(result, MPI_ERR_IO);
      *countdown = -1;
    }
  }
  memset(bytes, 0, 4 * PAGE);
  EXPECT_OK(MPI_File_read_at_all(fh, at, device, 4 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE));
  for (int i = 0; i < 4 * PAGE; ++i) EXPECT_EQ((unsigned char)bytes[i], value_at(i + 9));
  if (here == faulty) sim_copies_until_failure = 1;
  EXPECT_CLASS(MPI_File_write_at(fh, at, device, 4 * PAGE, MPI_BYTE, MPI_STATUS_IGNORE),
               here == faulty ? MPI_ERR_IO : MPI_SUCCESS);
  EXPECT_OK(MPI_File_close(&fh));
}

static int extent_of_type(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  int size = 0;
  (void)extra;
  MPI_Type_size(type, &size);
  *extent = size;
  return MPI_SUCCESS;
}

/* Inverts the bits of each byte of an int by direct access, which only host memory allows. */
static int turn(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset position,
                void* extra) {
  (void)type;
  (void)position;
  for (int i = 0; i < count; ++i) {
    const int number = ~((int*)buffer)[i];
    memcpy((char*)file + 4 * i, &number, 4);
  }
  (void)extra;
  return MPI_SUCCESS;
}

static int turn_back(void* buffer, MPI_Datatype type, int count, void* file, MPI_Offset position,
                     void* extra) {
  (void)type;
  (void)position;
  (void)extra;
  for (int i = 0; i < count; ++i) {
    int number = 0;
    memcpy(&number, (char*)file + 4 * i, 4);
    ((int*)buffer)[i] = ~number;
  }
  return MPI_SUCCESS;
}

static void representations_convert(const char* datarep, int gap) {
  enum { COUNT = 3000 };
  MPI_Datatype type;
  MPI_File fh = open_with("datarep", MPI_COMM_WORLD, "8192");
  int* const numbers = (int*)bytes;
  MPI_Type_create_resized(MPI_INT, 0, 4 * gap, &type);
  MPI_Type_commit(&type);
  EXPECT_OK(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, datarep, MPI_INFO_NULL));
  for (int i = 0; i < COUNT * gap; ++i) numbers[i] = i * 77777 + here;
  EXPECT_OK(MPI_File_write_at_all(fh, COUNT * here, device, COUNT, type, MPI_STATUS_IGNORE));
  unsigned char stored[4];
  stored_read("datarep", stored, 4, 4 * (COUNT * here + 1));
  const int second = gap * 77777 + here;
  const unsigned char* const kept = (const unsigned char*)&second;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(stored[i], strcmp(datarep, "turned") == 0 ? (unsigned char)~kept[i] : kept[3 - i]);
  memset(bytes, 0x11, 4 * COUNT * gap);
  EXPECT_OK(MPI_File_read_at_all(fh, COUNT * here, device, COUNT, type, MPI_STATUS_IGNORE));
  for (int i = 0; i < COUNT * gap; ++i)
    EXPECT_EQ(numbers[i], i % gap == 0 ? i * 77777 + here : 0x11111111);
  MPI_Type_free(&type);
  EXPECT_OK(MPI_File_close(&fh));
}

/* A struct of addresses, only some of which are device memory. */
static void one_type_over_host_and_device(void) {
  static char host[300];
  const int lens[] = {300, 500};
  MPI_Aint places[2];
  MPI_Datatype type;
  MPI_File fh = open_with("mixed", MPI_COMM_WORLD, "8192");
  const MPI_Offset at = 1000 * here;
  const MPI_Datatype parts[] = {MPI_BYTE, MPI_BYTE};
  MPI_Get_address(host, &places[0]);
  MPI_Get_address(device + 1000, &places[1]);
  for (int i = 0; i < 300; ++i) host[i] = (char)i;
  fill(3);
  MPI_Type_create_struct(2, lens, places, parts, &type);
  MPI_Type_commit(&type);
  EXPECT_OK(MPI_File_write_at(fh, at, MPI_BOTTOM, 1, type, MPI_STATUS_IGNORE));
  char found[800];
  stored_read("mixed", found, 800, at);
  for (int i = 0; i < 800; ++i)
    EXPECT_EQ(found[i], i < 300 ? (char)i : (char)value_at(i - 300 + 1000 + 3));
  MPI_Type_free(&type);
  EXPECT_OK(MPI_File_close(&fh));
}

/* Two threads of the file and the program's own work at the same time, each on another device. */
static void calls_run_at_the_same_time(void) {
  enum { LEN = 10 * PAGE, KINDS = 3 };
  MPI_File fh = open_with("same_time", MPI_COMM_WORLD, "8192");
  const int devices[KINDS][2] = {{SIM_CUDA, 0}, {SIM_HIP, 1}, {SIM_CUDA, 1}};
  const MPI_Offset at = (MPI_Offset)here * KINDS * LEN;
  MPI_Request requests[2];
  for (int writing = 1; writing >= 0; --writing) {
    for (int k = 0; k < KINDS; ++k)
      for (int i = 0; i < LEN; ++i)
        sim_bytes(devices[k][0], devices[k][1])[i] = writing ? (char)value_at(at + k * LEN + i) : 0;
    char* buffers[KINDS];
    for (int k = 0; k < KINDS; ++k) buffers[k] = sim_address(devices[k][0], devices[k][1]);
    if (writing) {
      EXPECT_OK(MPI_File_iwrite_at(fh, at, buffers[0], LEN, MPI_BYTE, &requests[0]));
      EXPECT_OK(MPI_File_iwrite_at_all(fh, at + LEN, buffers[1], LEN, MPI_BYTE, &requests[1]));
      EXPECT_OK(MPI_File_write_at(fh, at + 2 * LEN, buffers[2], LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      EXPECT_OK(MPI_File_iread_at(fh, at, buffers[0], LEN, MPI_BYTE, &requests[0]));
      EXPECT_OK(MPI_File_iread_at_all(fh, at + LEN, buffers[1], LEN, MPI_BYTE, &requests[1]));
      EXPECT_OK(MPI_File_read_at(fh, at + 2 * LEN, buffers[2], LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    EXPECT_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  for (int k = 0; k < KINDS; ++k)
    for (int i = 0; i < LEN; ++i)
      EXPECT_EQ((unsigned char)sim_bytes(devices[k][0], devices[k][1])[i],
                value_at(at + k * LEN + i));
  EXPECT_OK(MPI_File_close(&fh));
}

/* A real driver migrates managed memory by itself; the simulated one does not, so a copy is
 * visible. */
static void managed_memory_is_host_memory(void) {
  MPI_File fh = open_with("managed", MPI_COMM_WORLD, "8192");
  char* const managed = sim_address(SIM_CUDA, 1);
  sim_managed = 1;
  mprotect(managed, PAGE, PROT_READ | PROT_WRITE);
  memset(managed, 7, PAGE);
  sim_clear_log();
  EXPECT_OK(MPI_File_write_at(fh, PAGE * here, managed, PAGE, MPI_BYTE, MPI_STATUS_IGNORE));
  expect_text(sim_log, "W", __LINE__);
  mprotect(managed, PAGE, PROT_NONE);
  sim_managed = 0;
  EXPECT_OK(MPI_File_close(&fh));
}

int main(int argc, char** argv) {
  start_test(&argc, &argv, 100);
  sim_start();
  EXPECT_OK(MPI_Register_datarep("turned", turn_back, turn, extent_of_type, NULL));
  for (int driver = 0; driver < SIM_DRIVERS; ++driver) {
    device = sim_address(driver, 0);
    bytes = sim_bytes(driver, 0);
    copies_overlap();
    regular_pieces_are_one_copy();
    reads_stop_at_the_end_of_the_file();
    failures_reach_all_ranks();
    representations_convert("external32", 1);
    representations_convert("external32", 3);
    representations_convert("turned", 1);
    if (driver != SIM_ZE) one_type_over_host_and_device();
  }
  calls_run_at_the_same_time();
  managed_memory_is_host_memory();
  return end_test();
}
