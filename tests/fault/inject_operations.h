/* The operations that inject_calls.c repeats: calls of MPI-IO, each with what comes before and
 * after it. Each returns this rank's error. */
#pragma once

#include "inject_world.h"

static int caches_apart; /* as on NFS: small writes are kept until sync */

static MPI_Info hints_for(const char* reach) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_cb_write", "enable");
  MPI_Info_set(info, "romio_cb_read", "enable");
  MPI_Info_set(info, "shima_reach", reach);
  MPI_Info_set(info, "cb_buffer_size", "16384");
  if (caches_apart) MPI_Info_set(info, "shima_close_to_open", "enable");
  if (striped) MPI_Info_set(info, "striping_factor", "3");
  if (striped) MPI_Info_set(info, "striping_unit", "4096");
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
  MPI_File_set_view(file, 0, swapped ? MPI_INT : MPI_BYTE, filetype,
                    swapped ? "external32" : "native", MPI_INFO_NULL);
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
  if (rank == 0) MPI_File_delete(temporary, MPI_INFO_NULL);
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
static void open_and_write(void) {
  open_viewed();
  fill_buffer(1);
  MPI_File_write_at(file, 0, buffer + GUARD, 1, memory_type, MPI_STATUS_IGNORE);
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
static int op_write_and_sync(void) {
  const int written = op_write(), synced = op_sync();
  return written != MPI_SUCCESS ? written : synced;
}
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

enum { ALONE, TOGETHER, EITHER }; /* EITHER: ranks need not agree, and may fail for another one */

struct operation {
  const char* name;
  const char* reach;
  int piece;
  int (*run)(void);
  void (*before)(void);
  void (*after)(void);
  int scope;
  char moves; /* 'w', 'r', or neither */
  enum { PLAIN, STRIPED, SWAPPED, APART } kind;
};

static const struct operation operations[] = {
    {"first open", "pull", 512, op_first_open, make_fresh, close_fresh, TOGETHER, 0},
    {"open", "pull", 512, op_open, NULL, close_file, TOGETHER, 0},
    {"open at the end", "pull", 512, op_open_append, NULL, close_file, TOGETHER, 0},
    {"create", "pull", 512, op_create, remove_temporary, close_created, TOGETHER, 0},
    {"close", "pull", 512, op_close, open_plain, NULL, TOGETHER, 0},
    {"close and delete", "pull", 512, op_close, open_temporary, remove_temporary, TOGETHER, 0},
    {"set_view with hints", "pull", 512, op_set_view, open_plain, close_file, TOGETHER, 0},
    {"set_view", "pull", 512, op_same_view, open_plain, close_file, TOGETHER, 0},
    {"write_all, pull", "pull", 4096, op_write_all, open_viewed, close_file, TOGETHER, 'w'},
    {"read_all, pull", "pull", 4096, op_read_all, open_viewed, close_file, TOGETHER, 'r'},
    {"write_all, pack", "pack", 512, op_write_all, open_viewed, close_file, TOGETHER, 'w'},
    {"read_all, pack", "pack", 512, op_read_all, open_viewed, close_file, TOGETHER, 'r'},
    {"write_all, message", "message", 4096, op_write_all, open_viewed, close_file, TOGETHER, 'w'},
    {"read_all, message", "message", 4096, op_read_all, open_viewed, close_file, TOGETHER, 'r'},
    {"iwrite_all", "pack", 512, op_iwrite_all, open_viewed, close_file, TOGETHER, 'w'},
    {"iread_all", "pull", 512, op_iread_all, open_viewed, close_file, TOGETHER, 'r'},
    {"split write", "pull", 512, op_split_write, open_viewed, close_file, TOGETHER, 'w'},
    {"split read", "pack", 512, op_split_read, open_viewed, close_file, TOGETHER, 'r'},
    {"write", "pull", 512, op_write, open_viewed, close_file, ALONE, 'w'},
    {"read", "pull", 512, op_read, open_viewed, close_file, ALONE, 'r'},
    {"iwrite", "pull", 512, op_iwrite, open_viewed, close_file, ALONE, 'w'},
    {"set_size", "pull", 512, op_set_size, open_plain, close_file, TOGETHER, 0},
    {"preallocate", "pull", 512, op_preallocate, open_plain, close_file, TOGETHER, 0},
    {"sync", "pull", 512, op_sync, open_plain, close_file, TOGETHER, 0},
    {"set_atomicity", "pull", 512, op_atomicity, open_plain, close_file, TOGETHER, 0},
    {"read_ordered", "pull", 512, op_ordered, open_plain, close_file, TOGETHER, 0},
    {"seek_shared", "pull", 512, op_seek_shared, open_plain, close_file, TOGETHER, 0},
    {"read_shared", "pull", 512, op_read_shared, open_plain, close_file, ALONE, 0},
    {"write_all, external32", "pull", 512, op_write_all, open_viewed, close_file, TOGETHER, 'w',
     SWAPPED},
    {"read_all, external32", "pack", 512, op_read_all, open_viewed, close_file, TOGETHER, 'r',
     SWAPPED},
    {"iwrite_all, external32", "pack", 512, op_iwrite_all, open_viewed, close_file, TOGETHER, 'w',
     SWAPPED},
    {"read, external32", "pull", 512, op_read, open_viewed, close_file, ALONE, 'r', SWAPPED},
    {"kept write and sync", "pull", 512, op_write_and_sync, open_viewed, close_file, EITHER, 'w',
     APART},
    {"sync of kept writes", "pull", 512, op_sync, open_and_write, close_file, TOGETHER, 'w', APART},
    {"write_all, caches apart", "pull", 512, op_write_all, open_viewed, close_file, TOGETHER, 'w',
     APART},
    {"read_all, caches apart", "pack", 512, op_read_all, open_viewed, close_file, TOGETHER, 'r',
     APART},
    {"striped open", "pull", 512, op_open, NULL, close_file, TOGETHER, 0, STRIPED},
    {"striped create", "pull", 512, op_create, remove_temporary, close_created, TOGETHER, 0,
     STRIPED},
    {"striped write_all", "pull", 4096, op_write_all, open_viewed, close_file, TOGETHER, 'w',
     STRIPED},
    {"striped read_all", "pack", 512, op_read_all, open_viewed, close_file, TOGETHER, 'r', STRIPED},
    {"striped write", "pull", 512, op_write, open_viewed, close_file, ALONE, 'w', STRIPED},
    {"striped set_size", "pull", 512, op_set_size, open_plain, close_file, TOGETHER, 0, STRIPED},
    {"striped sync", "pull", 512, op_sync, open_plain, close_file, TOGETHER, 0, STRIPED},
};
