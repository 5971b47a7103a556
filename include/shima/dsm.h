/*
 * dsm.h: distributed shared memory for the tasks of a job.
 *
 * Every task *donates* memory; together that is the shared memory.  An address in it is a pair: a
 * task and an offset in what that task has donated.  Any task reads and writes it with calls that
 * need no help of the other task's program.  Start the program with
 * `shima run --lapi -n TASKS program`.
 *
 *   dsm* memory;
 *   uint64_t answer = 42;
 *   if (dsm_open(&(dsm_options){.size = 1 << 20}, &memory) < 0) ...
 *   int next = (dsm_task(memory) + 1) % dsm_tasks(memory);
 *   dsm_write(memory, next, 128, &answer, sizeof answer);
 *   dsm_barrier(memory);            every task finds 42 at offset 128 of dsm_address(memory)
 *   dsm_close(memory);
 *
 * Before a call moves anything, it checks that the task exists, that the range lies in its donated
 * memory, and that the owner permits the access.  A thread's accesses to the memory of one task
 * take effect in the order of its calls (except by UDP), but a READ may read before an earlier
 * dsm_write to *other* bytes is visible; not so after dsm_write_b, dsm_fence or an atomic
 * operation.  Nothing else is ordered: order accesses to several tasks with dsm_fence, those of
 * several tasks with dsm_barrier or atomic operations.
 *
 * Calls return 0 or a number (unless documented otherwise), or a negative DSM_ERR_ code; then
 * dsm_error_message() has a text for it.  Outputs are set only on success; but a READ that fails
 * after the checks may have stored some bytes.  Several threads may make any calls at once, except
 * dsm_close.  A child that was created by fork(2) after dsm_open may make none.
 * Manual pages: dsm(3) and one for every call.
 */
#ifndef SHIMA_DSM_H
#define SHIMA_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DSM_NOEXCEPT noexcept
extern "C" {
#else
#define DSM_NOEXCEPT
#endif
#define DSM_API __attribute__((visibility("default")))

/* ---- errors ------------------------------------------------------------------------------- */

/* Their values never change. */
enum dsm_error {
  DSM_ERR_ARGUMENT = -1,   /* an argument is wrong; nothing was done */
  DSM_ERR_NOT_A_TASK = -2, /* the process was not started as a task, or is a child of one */
  DSM_ERR_ADDRESS = -3,    /* no such task, or the range exceeds its donated memory */
  DSM_ERR_VIOLATION = -4,  /* the owner does not permit this access */
  DSM_ERR_NO_MEMORY = -5,  /* also: the donated memory has no free range of this size */
  DSM_ERR_LOST = -6,       /* the task has ended, has left, or cannot be reached */
  DSM_ERR_TIMEOUT = -7,    /* UDP: no answer came, or the answers were lost */
  DSM_ERR_IO = -8,         /* any other error of the system */
  DSM_ERR_INTERNAL = -9
};

/* The text of the last error of a call in this thread; "" if there was none.  Valid until the next
   call of this library in this thread that fails. */
DSM_API const char* dsm_error_message(void) DSM_NOEXCEPT;

/* ---- a shared memory ---------------------------------------------------------------------- */

typedef struct dsm dsm;

/* How accesses reach another task's memory.  The last three exist for comparison. */
enum dsm_way {
  DSM_WAY_BEST = 0,         /* within a host by plain copies, between hosts by LAPI */
  DSM_WAY_LAPI = 1,         /* by LAPI, also within a host */
  DSM_WAY_TCP = 2,          /* by TCP connections, at most 64 tasks */
  DSM_WAY_TCP_SPINNING = 3, /* the same; threads that wait spin for up to a millisecond first */
  DSM_WAY_UDP = 4           /* by UDP: a burst of dsm_write may lose data, see dsm_lost */
};

/* All zero, or NULL instead of options: no donated memory, and the best way. */
typedef struct dsm_options {
  size_t size; /* of the memory that this task donates, in bytes; it is zero at first */
  int way;     /* a dsm_way, the same in all tasks */
} dsm_options;

/* Collective: all tasks of the job call it, in the same order if there are several memories.  An
   error of one, except DSM_ERR_NOT_A_TASK, is an error of all. */
DSM_API int dsm_open(const dsm_options* options, dsm** memory) DSM_NOEXCEPT;

/* Collective: waits until all tasks that live have called it, and frees the memory.  Frees it also
   if it returns an error, which is then one of the last dsm_fence. */
DSM_API int dsm_close(dsm* memory) DSM_NOEXCEPT;

DSM_API int dsm_task(const dsm* memory) DSM_NOEXCEPT;  /* the caller's number, from 0 */
DSM_API int dsm_tasks(const dsm* memory) DSM_NOEXCEPT; /* how many there are */

/* Stores how many bytes a task has donated. */
DSM_API int dsm_size(dsm* memory, int task, uint64_t* size) DSM_NOEXCEPT;

/* The memory that the caller has donated; NULL if it has no bytes, and in a child by fork(2). */
DSM_API void* dsm_address(dsm* memory) DSM_NOEXCEPT;

/* ---- data --------------------------------------------------------------------------------- */

/* READ: copies `len` bytes from (task, offset) to `data`. */
DSM_API int dsm_read(dsm* memory, int task, uint64_t offset, void* data, size_t len) DSM_NOEXCEPT;

/* WRITE: copies `len` bytes from `data` to (task, offset).  Returns when `data` may be reused. */
DSM_API int dsm_write(dsm* memory, int task, uint64_t offset, const void* data,
                      size_t len) DSM_NOEXCEPT;

/* WRITE_B: the same, but returns when the bytes are in the target's memory. */
DSM_API int dsm_write_b(dsm* memory, int task, uint64_t offset, const void* data,
                        size_t len) DSM_NOEXCEPT;

/* Waits until all earlier dsm_write of this task are in the targets' memory.  By TCP and UDP,
   DSM_ERR_VIOLATION says that a target has refused one because its protection changed meanwhile. */
DSM_API int dsm_fence(dsm* memory) DSM_NOEXCEPT;

/* Collective: dsm_fence on all tasks, then waits until all have called it. */
DSM_API int dsm_barrier(dsm* memory) DSM_NOEXCEPT;

/* Stores how many bytes of this task's dsm_write had been lost at the last dsm_fence.  Always 0
   except by UDP. */
DSM_API int dsm_lost(dsm* memory, uint64_t* bytes) DSM_NOEXCEPT;

/* ---- atomic operations -------------------------------------------------------------------- */

/* On a variable at an offset that is a multiple of its size.  They are atomic with respect to each
   other and to atomic operations of the owner's program on its memory.  `previous` gets the value
   before; it may be NULL.  The owner must permit writing. */
DSM_API int dsm_fetch_add_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                             uint32_t* previous) DSM_NOEXCEPT;
DSM_API int dsm_fetch_add_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                             uint64_t* previous) DSM_NOEXCEPT;
DSM_API int dsm_fetch_or_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                            uint32_t* previous) DSM_NOEXCEPT;
DSM_API int dsm_fetch_or_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                            uint64_t* previous) DSM_NOEXCEPT;
DSM_API int dsm_swap_32(dsm* memory, int task, uint64_t offset, uint32_t value,
                        uint32_t* previous) DSM_NOEXCEPT;
DSM_API int dsm_swap_64(dsm* memory, int task, uint64_t offset, uint64_t value,
                        uint64_t* previous) DSM_NOEXCEPT;
/* Stores `desired` if the value is `expected`.  Returns 1 if it has, else 0. */
DSM_API int dsm_compare_and_swap_32(dsm* memory, int task, uint64_t offset, uint32_t expected,
                                    uint32_t desired) DSM_NOEXCEPT;
DSM_API int dsm_compare_and_swap_64(dsm* memory, int task, uint64_t offset, uint64_t expected,
                                    uint64_t desired) DSM_NOEXCEPT;

/* ---- allocation and protection, by the owner ---------------------------------------------- */

#define DSM_GRANULE 64 /* bytes: protected ranges begin and end at multiples of it */

/* What calls on a range may do; those of the owner's task too.  Plain loads and stores of the owner
   are not affected. */
enum dsm_protection { DSM_READ_WRITE = 0, DSM_READ_ONLY = 1, DSM_NONE = 2 };

/* Allocates a range in the caller's donated memory, with a protection, and stores its offset, a
   multiple of DSM_GRANULE.  All donated memory is DSM_READ_WRITE at first and may be used without
   allocation. */
DSM_API int dsm_alloc(dsm* memory, size_t size, int protection, uint64_t* offset) DSM_NOEXCEPT;

/* Frees it; the range is DSM_NONE until it is allocated again. */
DSM_API int dsm_free(dsm* memory, uint64_t offset) DSM_NOEXCEPT;

/* Changes the protection of a range of the caller's memory.  `offset` is a multiple of DSM_GRANULE;
   so is `size`, unless the range ends with the donated memory.  Every access that begins after the
   return obeys it; one in progress may still finish. */
DSM_API int dsm_protect(dsm* memory, uint64_t offset, uint64_t size, int protection) DSM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
