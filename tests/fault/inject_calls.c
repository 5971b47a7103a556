/* RANKS: none
 *
 * Has every call to malloc and to the system that Shima makes in an operation fail, one site after
 * the other (inject_calls_lib.c), and looks at what becomes of all ranks.
 *
 *   inject_calls FILE STRIDE OFFSET [OPERATION]
 *
 * For each operation a rank records the sites that it visits; then the operation is repeated with
 * one of them failing: alone, and with all memory that is asked for afterwards. STRIDE and OFFSET
 * choose every STRIDE-th site. After each failure: all ranks return one error class of a collective
 * call, bytes that nobody asked to write are unchanged, bytes are right where all succeed, and the
 * same file and communicator go on working. A hang ends the job with the place of the failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 24, MOST_RANKS = 8, GUARD = 64 };

static int rank, size, victim;
static const char* path;
static char temporary[4096];
static const char* doing = "starting";
static const char* kind = "";
static long site_number = -1;
static int strict;
static int failures;

static int (*inject_begin)(void);
static int (*inject_end)(void);
static uint64_t (*inject_site)(int, const char**, int*);
static void (*inject_arm)(uint64_t, int, int);
static int (*inject_disarm)(void);
static void (*inject_where)(char*, size_t);

static void say_where(const char* what) {
  char where[1024];
  inject_where(where, sizeof where);
  fprintf(stderr, "rank %d: %s: %s, site %ld (%s)%s, victim %d\n    %s\n", rank, what, doing,
          site_number, kind, strict ? " and all memory after it" : "", victim, where);
}

static void on_alarm(int number) {
  say_where(number == SIGALRM ? "HANG" : "CRASH");
  if (getenv("INJECT_WAIT") != NULL) pause();
  _exit(9);
}

static void complain(const char* what) {
  ++failures;
  say_where(what);
}

/* Meetings that leave the cores to others. */
static void finish(MPI_Request* request) {
  int done = 0;
  while (!done) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!done) usleep(50);
  }
}
static void gather(int mine, int* all) {
  MPI_Request request;
  MPI_Iallgather(&mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
  finish(&request);
}
static void meet(void) {
  int all[MOST_RANKS];
  gather(0, all);
}
static uint64_t from_victim(uint64_t mine) {
  MPI_Request request;
  MPI_Ibcast(&mine, 1, MPI_UINT64_T, victim, MPI_COMM_WORLD, &request);
  finish(&request);
  return mine;
}

/* The file: rows of one piece a rank, and one that is nobody's. */
static unsigned char old_byte(long at) { return (unsigned char)(at * 7 + 3); }
static unsigned char new_byte(long at) { return (unsigned char)~old_byte(at); }

static int piece;
static MPI_File file = MPI_FILE_NULL;
static MPI_Datatype filetype = MPI_DATATYPE_NULL, memory_type = MPI_DATATYPE_NULL;
static unsigned char* buffer;

static long row_bytes(void) { return (long)piece * (size + 1); }
static long file_bytes(void) { return row_bytes() * ROWS; }
static long my_bytes(void) { return (long)piece * ROWS; }
static long place_of(long i) { return i / piece * row_bytes() + (long)rank * piece + i % piece; }

static void put_old(void) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  for (long i = 0; i < file_bytes(); ++i) all[i] = old_byte(i);
  const int fd = open(path, O_RDWR | O_CREAT, 0644);
  if (ftruncate(fd, file_bytes()) != 0 || pwrite(fd, all, (size_t)file_bytes(), 0) != file_bytes())
    abort();
  close(fd);
  free(all);
}

static void check_file(int succeeded, int writes) {
  if (rank != 0) return;
  unsigned char* all = malloc((size_t)file_bytes());
  const int fd = open(path, O_RDONLY);
  const ssize_t n = pread(fd, all, (size_t)file_bytes(), 0);
  if (n != file_bytes()) complain("the file is shorter");
  for (long i = 0; i < n; ++i) {
    const int asked = writes && i % row_bytes() < (long)piece * size;
    if (all[i] == old_byte(i) && !(asked && succeeded)) continue;
    if (all[i] == new_byte(i) && asked) continue;
    complain(asked ? "a byte is wrong though all succeeded"
                   : "a byte that nobody wrote has changed");
    break;
  }
  close(fd);
  free(all);
}

static void fill_buffer(int writes) {
  memset(buffer, 0xa5, (size_t)my_bytes() + 2 * GUARD);
  if (writes)
    for (long i = 0; i < my_bytes(); ++i) buffer[GUARD + i] = new_byte(place_of(i));
}

static void check_buffer(int succeeded) {
  for (int i = 0; i < GUARD; ++i)
    if (buffer[i] != 0xa5 || buffer[GUARD + my_bytes() + i] != 0xa5)
      return complain("memory around the buffer has changed");
  for (long i = 0; succeeded && i < my_bytes(); ++i)
    if (buffer[GUARD + i] != old_byte(place_of(i)))
      return complain("a byte was read wrong though all succeeded");
}

static int class_of(int code) {
  int class = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* Operations. Each returns this rank's error. */
static MPI_Info hints_for(const char* reach) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_cb_read", "enable");
  MPI_Info_set(info, "shima_reach", reach);
  MPI_Info_set(info, "cb_buffer_size", "16384");
  return info;
}

static const char* reach = "pull";
static int (*volatile never)(void);

static int open_on(MPI_Comm comm, const char* name, int mode, MPI_File* made) {
  MPI_Info info = hints_for(reach);
  const int code = MPI_File_open(comm, name, mode, info, made);
  MPI_Info_free(&info);
  return code;
}

static void view_file(void) {
  MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
}

static MPI_Comm fresh = MPI_COMM_NULL;
static void make_fresh(void) { MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &fresh); }
static void drop_fresh(void) { MPI_Comm_free(&fresh); }
static void close_file(void) {
  if (file != MPI_FILE_NULL && MPI_File_close(&file) != MPI_SUCCESS)
    complain("a later close failed");
}
static void close_fresh(void) {
  close_file();
  drop_fresh();
}
static int op_first_open(void) { return open_on(fresh, path, MPI_MODE_RDWR, &file); }
static int op_open(void) { return open_on(MPI_COMM_WORLD, path, MPI_MODE_RDWR, &file); }
static int op_open_append(void) {
  return open_on(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_APPEND, &file);
}
static void remove_temporary(void) {
  if (rank == 0) unlink(temporary);
  meet();
}
static int op_create(void) {
  return open_on(MPI_COMM_WORLD, temporary, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, &file);
}
static void close_created(void) {
  close_file();
  remove_temporary();
}
static void open_temporary(void) {
  remove_temporary();
  open_on(MPI_COMM_WORLD, temporary, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
          &file);
}
static int op_close(void) { return MPI_File_close(&file); }
static void open_plain(void) { op_open(); }
static void open_viewed(void) {
  op_open();
  view_file();
}
static int op_set_view(void) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", site_number % 2 == 0 ? "8192" : "16384");
  const int code = MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", info);
  MPI_Info_free(&info);
  return code;
}
static int op_same_view(void) {
  return MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL);
}
static int op_write_all(void) {
  return MPI_File_write_at_all(file, 0, buffer + GUARD, 1, memory_type, MPI_STATUS_IGNORE);
}
static int op_read_all(void) {
  return MPI_File_read_at_all(file, 0, buffer + GUARD, 1, memory_type, MPI_STATUS_IGNORE);
}
static int op_write(void) {
  return MPI_File_write_at(file, 0, buffer + GUARD, 1, memory_type, MPI_STATUS_IGNORE);
}
static int op_read(void) {
  return MPI_File_read_at(file, 0, buffer + GUARD, 1, memory_type, MPI_STATUS_IGNORE);
}
static int wait_for(int code, MPI_Request* request) {
  if (code != MPI_SUCCESS) return code;
  return MPI_Wait(request, MPI_STATUS_IGNORE);
}
static int op_iwrite_all(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  return wait_for(MPI_File_iwrite_at_all(file, 0, buffer + GUARD, 1, memory_type, &request),
                  &request);
}
static int op_iread_all(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  return wait_for(MPI_File_iread_at_all(file, 0, buffer + GUARD, 1, memory_type, &request),
                  &request);
}
static int op_iwrite(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  return wait_for(MPI_File_iwrite_at(file, 0, buffer + GUARD, 1, memory_type, &request), &request);
}
static int op_split_write(void) {
  const int code = MPI_File_write_at_all_begin(file, 0, buffer + GUARD, 1, memory_type);
  return code != MPI_SUCCESS ? code
                             : MPI_File_write_at_all_end(file, buffer + GUARD, MPI_STATUS_IGNORE);
}
static int op_split_read(void) {
  const int code = MPI_File_read_at_all_begin(file, 0, buffer + GUARD, 1, memory_type);
  return code != MPI_SUCCESS ? code
                             : MPI_File_read_at_all_end(file, buffer + GUARD, MPI_STATUS_IGNORE);
}
static int op_set_size(void) { return MPI_File_set_size(file, file_bytes()); }
static int op_preallocate(void) { return MPI_File_preallocate(file, file_bytes()); }
static int op_sync(void) { return MPI_File_sync(file); }
static int op_atomicity(void) {
  const int code = MPI_File_set_atomicity(file, 1);
  return code;
}
static int op_ordered(void) {
  /* In rank order, at a place where the file holds the same bytes. */
  return MPI_File_read_ordered(file, buffer + GUARD, piece, MPI_BYTE, MPI_STATUS_IGNORE);
}
static int op_seek_shared(void) { return MPI_File_seek_shared(file, 0, MPI_SEEK_SET); }
static int op_read_shared(void) {
  return MPI_File_read_shared(file, buffer + GUARD, 16, MPI_BYTE, MPI_STATUS_IGNORE);
}

struct operation {
  const char* name;
  const char* reach;
  int piece;
  int (*run)(void);
  void (*before)(void);
  void (*after)(void);
  int collective;
  char moves; /* 'w', 'r', or neither */
};

static const struct operation operations[] = {
    {"first open", "pull", 512, op_first_open, make_fresh, close_fresh, 1, 0},
    {"open", "pull", 512, op_open, NULL, close_file, 1, 0},
    {"open at the end", "pull", 512, op_open_append, NULL, close_file, 1, 0},
    {"create", "pull", 512, op_create, remove_temporary, close_created, 1, 0},
    {"close", "pull", 512, op_close, open_plain, NULL, 1, 0},
    {"close and delete", "pull", 512, op_close, open_temporary, remove_temporary, 1, 0},
    {"set_view with hints", "pull", 512, op_set_view, open_plain, close_file, 1, 0},
    {"set_view", "pull", 512, op_same_view, open_plain, close_file, 1, 0},
    {"write_all, pull", "pull", 4096, op_write_all, open_viewed, close_file, 1, 'w'},
    {"read_all, pull", "pull", 4096, op_read_all, open_viewed, close_file, 1, 'r'},
    {"write_all, pack", "pack", 512, op_write_all, open_viewed, close_file, 1, 'w'},
    {"read_all, pack", "pack", 512, op_read_all, open_viewed, close_file, 1, 'r'},
    {"write_all, message", "message", 4096, op_write_all, open_viewed, close_file, 1, 'w'},
    {"read_all, message", "message", 4096, op_read_all, open_viewed, close_file, 1, 'r'},
    {"iwrite_all", "pack", 512, op_iwrite_all, open_viewed, close_file, 1, 'w'},
    {"iread_all", "pull", 512, op_iread_all, open_viewed, close_file, 1, 'r'},
    {"split write", "pull", 512, op_split_write, open_viewed, close_file, 1, 'w'},
    {"split read", "pack", 512, op_split_read, open_viewed, close_file, 1, 'r'},
    {"write", "pull", 512, op_write, open_viewed, close_file, 0, 'w'},
    {"read", "pull", 512, op_read, open_viewed, close_file, 0, 'r'},
    {"iwrite", "pull", 512, op_iwrite, open_viewed, close_file, 0, 'w'},
    {"set_size", "pull", 512, op_set_size, open_plain, close_file, 1, 0},
    {"preallocate", "pull", 512, op_preallocate, open_plain, close_file, 1, 0},
    {"sync", "pull", 512, op_sync, open_plain, close_file, 1, 0},
    {"set_atomicity", "pull", 512, op_atomicity, open_plain, close_file, 1, 0},
    {"read_ordered", "pull", 512, op_ordered, open_plain, close_file, 1, 0},
    {"seek_shared", "pull", 512, op_seek_shared, open_plain, close_file, 1, 0},
    {"read_shared", "pull", 512, op_read_shared, open_plain, close_file, 0, 0},
};

static void make_types(void) {
  if (filetype != MPI_DATATYPE_NULL) {
    MPI_Type_free(&filetype);
    MPI_Type_free(&memory_type);
  }
  MPI_Datatype rows, bytes;
  const int starts[3] = {rank * piece, 0, 0};
  MPI_Type_contiguous(piece, MPI_BYTE, &bytes);
  MPI_Type_create_hindexed_block(1, piece, (MPI_Aint[]){starts[0]}, MPI_BYTE, &rows);
  MPI_Type_create_resized(rows, 0, row_bytes(), &filetype);
  MPI_Type_commit(&filetype);
  /* In many unequal blocks, so that its description is a long letter. */
  int lens[4 * ROWS], count = 0;
  MPI_Aint places[4 * ROWS];
  long at = 0;
  for (int i = 0; i < ROWS; ++i) {
    const int cuts[5] = {0, 100 + 3 * i, 200 + 5 * i, 330 + 7 * i, piece};
    for (int k = 0; k < 4; ++k) {
      lens[count] = cuts[k + 1] - cuts[k];
      places[count++] = at + cuts[k];
    }
    at += piece;
  }
  MPI_Type_create_hindexed(count, lens, places, MPI_BYTE, &memory_type);
  MPI_Type_commit(&memory_type);
  MPI_Type_free(&rows);
  MPI_Type_free(&bytes);
  free(buffer);
  buffer = malloc((size_t)my_bytes() + 2 * GUARD);
}

/* One run of an operation; `site` 0 records instead. Returns whether the call failed as wished. */
static int run(const struct operation* op, uint64_t site, int all_after, int* site_count) {
  int classes[MOST_RANKS], same = 1, good = 1, fired = 0;
  doing = op->name;
  strict = all_after;
  reach = op->reach;
  put_old();
  meet();
  if (op->before != NULL) op->before();
  fill_buffer(op->moves == 'w');
  meet();
  alarm(30);
  if (rank == victim) {
    if (site == 0)
      inject_begin();
    else
      inject_arm(site, 1, all_after);
  }
  const int class = class_of(op->run());
  if (rank == victim) {
    if (site == 0)
      *site_count = inject_end();
    else
      fired = inject_disarm();
  }
  gather(class, classes);
  alarm(0);
  for (int i = 0; i < size; ++i) {
    same = same && classes[i] == classes[0];
    good = good && classes[i] == MPI_SUCCESS;
  }
  if (op->collective && !same) {
    char text[200] = "ranks do not agree:";
    for (int i = 0; i < size; ++i) sprintf(text + strlen(text), " %d", classes[i]);
    if (rank == victim) complain(text);
  }
  if (!op->collective && rank != victim && class != MPI_SUCCESS)
    complain("a failure of another rank's alone");
  if (site == 0 && !good && rank == victim) complain("failed without an injected failure");
  check_file(op->moves == 'w' && good, op->moves == 'w');
  if (op->moves == 'r') check_buffer(class == MPI_SUCCESS);
  meet();
  if (op->after != NULL) op->after();
  file = MPI_FILE_NULL;
  return fired;
}

static void try_all(const struct operation* op, uint64_t stride, uint64_t offset, long* tried) {
  int count = 0;
  piece = op->piece;
  make_types();
  run(op, 0, 0, &count); /* what happens the first time only */
  run(op, 0, 0, &count);
  count = (int)from_victim((uint64_t)count);
  for (int i = 0; i < count; ++i) {
    const char* name = "";
    int times = 0;
    const uint64_t site = from_victim(rank == victim ? inject_site(i, &name, &times) : 0);
    if (site / 16 % stride != offset % stride) continue;
    site_number = i;
    kind = name;
    for (int all_after = 0; all_after < 2; ++all_after) {
      run(op, site, all_after, NULL);
      ++*tried;
    }
  }
  site_number = -1;
}

#define FIND(name) *(void**)&name = dlsym(RTLD_DEFAULT, #name)

int main(int argc, char** argv) {
  int all[MOST_RANKS];
  long tried = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  FIND(inject_begin);
  FIND(inject_end);
  FIND(inject_site);
  FIND(inject_arm);
  FIND(inject_disarm);
  FIND(inject_where);
  if (argc < 4 || inject_begin == NULL) {
    fprintf(
        stderr,
        "usage: inject_calls FILE STRIDE OFFSET [OPERATION], with inject_calls_lib preloaded\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  path = argv[1];
  snprintf(temporary, sizeof temporary, "%s.made", path);
  const uint64_t stride = strtoull(argv[2], NULL, 10), offset = strtoull(argv[3], NULL, 10);
  const int deadly[] = {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; ++i) signal(deadly[i], on_alarm);
  signal(SIGPIPE, SIG_IGN);
  inject_begin();
  inject_end();
  const int victims[2] = {0, size - 1};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; ++i) {
    const struct operation* op = &operations[i];
    if (argc > 4 && strstr(op->name, argv[4]) == NULL) continue;
    for (int v = 0; v < 2; ++v) {
      const long before = tried;
      victim = victims[v];
      try_all(op, stride, offset, &tried);
      if (rank == 0 && getenv("INJECT_VERBOSE") != NULL)
        fprintf(stderr, "%s, rank %d: %ld failures\n", op->name, victim, tried - before);
    }
  }
  gather(failures, all);
  int sum = 0;
  for (int i = 0; i < size; ++i) sum += all[i];
  if (rank == 0) printf("%ld injected failures, %d problems\n", tried, sum);
  MPI_Finalize();
  return sum == 0 ? 0 : 1;
}
