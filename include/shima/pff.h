/*
 * pff.h: parallel files for C and C++ programs, without MPI.
 *
 * A file is opened alone (pff_open) or together with other processes of the same user and node
 * (pff_set_join, pff_open_in).  It may be striped over several directories; to the program it is
 * one sequence of bytes.  There is no file pointer: every call selects its bytes by a pff_where,
 * which one of four short calls creates:
 *
 *   pff_span(offset, size)                         consecutive bytes
 *   pff_stride(offset, element, stride, size)      equal elements at equal distances
 *   pff_nested(offset, element, levels, count)     strides within strides: a block of an array
 *   pff_list(pieces, count)                        any pieces, in any order
 *
 *   int64_t n = pff_write(file, pff_stride(me * 4096, 4096, members * 4096, sizeof rows), rows);
 *   if (n < 0) fprintf(stderr, "%s\n", pff_error_message());
 *
 * The data are contiguous in memory or, with the calls that end in _from and _into, as a second
 * pff_where selects.  Calls that end in _all, or have _all_ in their names, are collective: every
 * member of the set makes them, in one order, and the pieces of all are merged into long transfers.
 * pff_start_... is any of these calls, executed while the program continues.
 *
 * Calls return 0 or a number of bytes (unless documented otherwise), or a negative PFF_ERR_ code;
 * then pff_error_message() has a text for it.  Outputs are set only on success.  Lengths and
 * offsets are in bytes.  Different threads may make calls on different files at once, and also
 * pff_read, pff_write, their variants and their pff_start_ forms on one file.  Objects of this
 * library do not survive fork() in the child.  Manual pages: pff(3) and one for every call.
 */
#ifndef SHIMA_PFF_H
#define SHIMA_PFF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#define PFF_NOEXCEPT noexcept
extern "C" {
#else
#define PFF_NOEXCEPT
#endif
#define PFF_API __attribute__((visibility("default")))

/* ---- errors ------------------------------------------------------------------------------- */

/* Their values never change. */
enum pff_error {
  PFF_ERR_ARGUMENT = -1,  /* an argument is wrong; nothing was moved */
  PFF_ERR_MODE = -2,      /* the file was not opened for this */
  PFF_ERR_NAME = -3,      /* the name cannot be a file's name */
  PFF_ERR_FILE = -4,      /* a striped file's description is damaged */
  PFF_ERR_NOT_SAME = -5,  /* members passed different values that must be the same */
  PFF_ERR_CANCELLED = -6, /* the request was cancelled, here or at another member */
  PFF_ERR_NO_SUCH_FILE = -7,
  PFF_ERR_EXISTS = -8,
  PFF_ERR_IN_USE = -9,
  PFF_ERR_ACCESS = -10, /* permission denied; a process of another user */
  PFF_ERR_READ_ONLY = -11,
  PFF_ERR_UNSUPPORTED = -12, /* this system cannot do it */
  PFF_ERR_NO_MEMORY = -13,
  PFF_ERR_NO_SPACE = -14,
  PFF_ERR_QUOTA = -15,
  PFF_ERR_IO = -16,        /* any other error of the disk or the system */
  PFF_ERR_TIMEOUT = -17,   /* a member of the set did not join in time */
  PFF_ERR_PEER_LOST = -18, /* a member's process has ended */
  PFF_ERR_INTERNAL = -19
};

/* The text of the last error of a call in this thread; "" if there was none.  Valid until the next
   call of this library in this thread that fails. */
PFF_API const char* pff_error_message(void) PFF_NOEXCEPT;

/* ---- which bytes -------------------------------------------------------------------------- */

typedef struct pff_piece {
  int64_t offset;
  uint64_t size;
} pff_piece;

/* `count` repetitions of the following levels, `stride` apart; strides may be negative. */
typedef struct pff_level {
  uint64_t count;
  int64_t stride;
} pff_level;

/* A selection of bytes of a file, counted from its beginning, or of memory, counted from the
   address passed with it.  A value: created by the calls below, copied, never freed. */
typedef struct pff_where {
  int32_t kind; /* 0 span, 1 stride, 2 nested, 3 list */
  int32_t reserved;
  int64_t offset;
  uint64_t element; /* stride and nested */
  int64_t stride;   /* stride */
  uint64_t size;    /* span and stride */
  size_t count;     /* of levels or pieces */
  const void* parts;
} pff_where;

/* `size` bytes from `offset`. */
static inline pff_where pff_span(int64_t offset, uint64_t size) PFF_NOEXCEPT {
  pff_where where = {0, 0, offset, 0, 0, size, 0, NULL};
  return where;
}

/* `size` bytes in all, in elements of `element` bytes; the first begins at `offset`, each next one
   `stride` after the beginning of the one before.  The last element may be incomplete. */
static inline pff_where pff_stride(int64_t offset, uint64_t element, int64_t stride,
                                   uint64_t size) PFF_NOEXCEPT {
  pff_where where = {1, 0, offset, element, stride, size, 0, NULL};
  return where;
}

/* Strides within strides, the outermost level first: a block of nz x ny rows of an array is
   pff_nested(begin, row_bytes, (pff_level[]){{nz, plane_stride}, {ny, row_stride}}, 2).  `levels`
   is read by the calls that get the result, and may be freed when they return. */
static inline pff_where pff_nested(int64_t offset, uint64_t element, const pff_level* levels,
                                   size_t count) PFF_NOEXCEPT {
  pff_where where = {2, 0, offset, element, 0, 0, count, levels};
  return where;
}

/* Pieces, in the order of their bytes on the other side; `pieces` has the same lifetime as
   `levels`.  Equal pieces at equal distances are cheaper as a stride. */
static inline pff_where pff_list(const pff_piece* pieces, size_t count) PFF_NOEXCEPT {
  pff_where where = {3, 0, 0, 0, 0, 0, count, pieces};
  return where;
}

/* ---- striping ----------------------------------------------------------------------------- */

/* A region of a striped file, up to the beginning of the next one: blocks of `unit` bytes are
   distributed round-robin over `subfiles` subfiles in the order of `targets`. */
typedef struct pff_region {
  int64_t begin;
  uint64_t unit;
  int32_t subfiles;    /* 0: as many as targets are named */
  const char* targets; /* names, separated by commas, used in turn; "beside" is a directory beside
                          the file; NULL: the targets configured (SHIMA_TARGETS) */
} pff_region;

typedef struct pff_striping {
  size_t region_count; /* 0: a plain file */
  const pff_region* regions;
} pff_striping;

/* Creates a striping from text: "BEGIN:UNIT:TARGETS" for each region, separated by commas, where
   TARGETS is a number or names joined by '+', as in "0:64K:1,64K:1M:4" or "0:1M:disk0+disk1". */
PFF_API int pff_striping_parse(const char* text, pff_striping** striping) PFF_NOEXCEPT;

/* Frees the result of pff_striping_parse or pff_striping_of; NULL: does nothing. */
PFF_API void pff_striping_free(pff_striping* striping) PFF_NOEXCEPT;

/* ---- process sets ------------------------------------------------------------------------- */

/* Processes of one user that move data together: on one node, or on several. */
typedef struct pff_set pff_set;

/* Joins the processes `pids`, of which the caller is one; each passes the same array, in the same
   order, and the same `number`, which distinguishes sets of the same processes.  They may have been
   started in any way.  Returns when all have joined, or with the same error at all that did: a
   process that does not exist, has ended (PFF_ERR_PEER_LOST), is another user's (PFF_ERR_ACCESS),
   or did not join within `timeout_ms` (PFF_ERR_TIMEOUT; negative: no limit).  From then on the
   members may read and write the memory of each other. */
PFF_API int pff_set_join(const pid_t* pids, int count, uint64_t number, int timeout_ms,
                         pff_set** set) PFF_NOEXCEPT;

/* A process of a host; `host` as gethostname(2) says there, or the part before its first dot. */
typedef struct pff_place {
  const char* host;
  pid_t pid;
} pff_place;

/* The same for processes on several nodes, which need no MPI and share nothing but a key: the file
   SHIMA_IOD_KEY, or iod.key beside the list of targets.  `meeting` is "HOST:PORT", an address at
   which the first process of the array listens until all have joined; `timeout_ms` should be the
   same at all.  A connection is made between every two processes; at most 512 may join. */
PFF_API int pff_set_join_hosts(const pff_place* places, int count, uint64_t number, int timeout_ms,
                               const char* meeting, pff_set** set) PFF_NOEXCEPT;

/* The caller's place in the array. */
PFF_API int pff_set_member(const pff_set* set) PFF_NOEXCEPT;
PFF_API int pff_set_count(const pff_set* set) PFF_NOEXCEPT;

/* Waits until all members have called it.  Collective. */
PFF_API int pff_set_meet(pff_set* set) PFF_NOEXCEPT;

/* Frees the set; local.  Files opened in it stay open. */
PFF_API void pff_set_leave(pff_set* set) PFF_NOEXCEPT;

/* ---- files -------------------------------------------------------------------------------- */

typedef struct pff_file pff_file;

enum pff_open_flag {
  PFF_READ = 1,
  PFF_WRITE = 2,
  PFF_CREATE = 4,   /* creates the file if it does not exist */
  PFF_EXCLUSIVE = 8 /* with PFF_CREATE: an error if the file exists */
};

/* Opens a file alone.  `striping` is for a file that this call creates (NULL: from the hints,
   SHIMA_HINTS and the directory's default, else plain); an existing file keeps its own.  `hints` is
   NULL or "key=value;key=value", see pff_open(3). */
PFF_API int pff_open(const char* path, int flags, const pff_striping* striping, const char* hints,
                     pff_file** file) PFF_NOEXCEPT;

/* The same together with all members of a set; flags and path are the same at all members, the
   first member's striping and hints are used.  Collective. */
PFF_API int pff_open_in(pff_set* set, const char* path, int flags, const pff_striping* striping,
                        const char* hints, pff_file** file) PFF_NOEXCEPT;

/* Waits for pending transfers, closes the file and frees it, also if it returns an error (one that
   the disk reported late).  Requests must still be waited for.  Collective if the file was opened
   in a set. */
PFF_API int pff_close(pff_file* file) PFF_NOEXCEPT;

/* The size in bytes. */
PFF_API int64_t pff_size(pff_file* file) PFF_NOEXCEPT;

/* Truncates the file or extends it with zeros.  Collective, like the next two.  This and
   pff_reserve need PFF_WRITE. */
PFF_API int pff_resize(pff_file* file, int64_t size) PFF_NOEXCEPT;
/* Allocates disk space up to `size`; never shortens the file. */
PFF_API int pff_reserve(pff_file* file, int64_t size) PFF_NOEXCEPT;
/* Returns when all written bytes are on the disk. */
PFF_API int pff_sync(pff_file* file) PFF_NOEXCEPT;

/* The striping of the file; `region_count` 0: it is plain.  Free it with pff_striping_free. */
PFF_API int pff_striping_of(pff_file* file, pff_striping** striping) PFF_NOEXCEPT;

/* Removes a file by name, a striped one with its subfiles; no process may have it open. */
PFF_API int pff_remove(const char* path) PFF_NOEXCEPT;

/* ---- reading and writing ------------------------------------------------------------------ */

/* Moves the bytes `where` of the file from or to `buffer`; returns how many were moved.  A read
   stops at the first byte, in the order of `where`, that is at or beyond the end of the file. */
PFF_API int64_t pff_read(pff_file* file, pff_where where, void* buffer) PFF_NOEXCEPT;
PFF_API int64_t pff_write(pff_file* file, pff_where where, const void* buffer) PFF_NOEXCEPT;

/* The same with memory that is not contiguous either: the bytes `memory`, counted from `base`.
   Both select the same number of bytes. */
PFF_API int64_t pff_read_into(pff_file* file, pff_where where, void* base,
                              pff_where memory) PFF_NOEXCEPT;
PFF_API int64_t pff_write_from(pff_file* file, pff_where where, const void* base,
                               pff_where memory) PFF_NOEXCEPT;

/* The same together: every member of the file's set calls it, with its own bytes (or none), and
   all return the same error if one fails.  If two members write the same byte, one of them wins.
   Collective calls on one file come from one thread at a time. */
PFF_API int64_t pff_read_all(pff_file* file, pff_where where, void* buffer) PFF_NOEXCEPT;
PFF_API int64_t pff_write_all(pff_file* file, pff_where where, const void* buffer) PFF_NOEXCEPT;
PFF_API int64_t pff_read_all_into(pff_file* file, pff_where where, void* base,
                                  pff_where memory) PFF_NOEXCEPT;
PFF_API int64_t pff_write_all_from(pff_file* file, pff_where where, const void* base,
                                   pff_where memory) PFF_NOEXCEPT;

/* ---- nonblocking forms of the same --------------------------------------------------------- */

/* A pending read or write.  Every request is waited for once, which frees it. */
typedef struct pff_request pff_request;

/* Each starts the call of that name, and returns.  The buffer must stay until the request has been
   waited for; levels and pieces may be freed at once.  Requests on one file are executed in order,
   the collective and the others each in their own queue; files do not wait for each other.  A
   blocking collective call waits for the collective requests before it. */
PFF_API int pff_start_read(pff_file* file, pff_where where, void* buffer,
                           pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_write(pff_file* file, pff_where where, const void* buffer,
                            pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_read_into(pff_file* file, pff_where where, void* base, pff_where memory,
                                pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_write_from(pff_file* file, pff_where where, const void* base,
                                 pff_where memory, pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_read_all(pff_file* file, pff_where where, void* buffer,
                               pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_write_all(pff_file* file, pff_where where, const void* buffer,
                                pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_read_all_into(pff_file* file, pff_where where, void* base, pff_where memory,
                                    pff_request** request) PFF_NOEXCEPT;
PFF_API int pff_start_write_all_from(pff_file* file, pff_where where, const void* base,
                                     pff_where memory, pff_request** request) PFF_NOEXCEPT;

/* Sleeps until the request is complete, frees it, and returns the result of its call. */
PFF_API int64_t pff_wait(pff_request* request) PFF_NOEXCEPT;

/* Sleeps until one of `count` requests is complete, and returns its place in the array; pff_wait(3)
   then frees it.  NULL entries are ignored. */
PFF_API int pff_wait_any(pff_request* const* requests, int count) PFF_NOEXCEPT;

/* 1 if pff_wait would not sleep, else 0. */
PFF_API int pff_test(pff_request* request) PFF_NOEXCEPT;

/* Cancels a request that has not started: 1, and pff_wait returns PFF_ERR_CANCELLED.  0 if it is
   too late.  A collective request still takes part, as an error that all members get. */
PFF_API int pff_cancel(pff_request* request) PFF_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* SHIMA_PFF_H */
