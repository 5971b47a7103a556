/*
 * pvas.h: many programs in one address space.
 *
 * A *space* is an address space that belongs to several *tasks*.  A task is a process: it runs its
 * own program, with its own libc and globals, its own process ID, files and signals; but its
 * memory is a part (its *partition*) of the space, and an address refers to the same memory in all
 * of its tasks.  So a task follows pointers into another task's heap, stack, or globals, without
 * prior sharing.  Programs are ordinary position-independent executables; nothing in them, in libc,
 * or in the kernel is changed on disk.
 *
 *   pvas_space* space;
 *   int task, status;
 *   if (pvas_create(NULL, &space) < 0) ...
 *   pvas_spawn(space, &(pvas_program){.file = "./worker"}, &task);
 *   pvas_wait(space, task, -1, &status);
 *   pvas_destroy(space);
 *
 * and in a worker, which was linked with this library or not:
 *
 *   static struct table mine;
 *   pvas_export("table", &mine, sizeof mine);          in one task,
 *   pvas_import("table", -1, &address, &size, NULL);   and in another: address == &mine of the
 * first
 *
 * Calls return 0 or a number (unless documented otherwise), or a negative PVAS_ERR_ code; then
 * pvas_error_message() has a text for it.  Outputs are set only on success.  Several threads may
 * make any calls at once; a pvas_space is for the process that created it, not for its children.
 * Manual pages: pvas(3) and one for every call.
 */
#ifndef SHIMA_PVAS_H
#define SHIMA_PVAS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#define PVAS_NOEXCEPT noexcept
extern "C" {
#else
#define PVAS_NOEXCEPT
#endif
#define PVAS_API __attribute__((visibility("default")))

/* ---- errors ------------------------------------------------------------------------------- */

/* Their values never change. */
enum pvas_error {
  PVAS_ERR_ARGUMENT = -1,   /* an argument is wrong; nothing was done */
  PVAS_ERR_NOT_A_TASK = -2, /* the caller is not a task of a space, or its space is in no group */
  PVAS_ERR_PROGRAM = -3,    /* this program cannot be a task, or this system has no spaces */
  PVAS_ERR_NO_SUCH_FILE = -4,
  PVAS_ERR_EXISTS = -5, /* the name is taken */
  PVAS_ERR_ACCESS = -6,
  PVAS_ERR_NO_MEMORY = -7, /* also: the space has no room for another task */
  PVAS_ERR_IO = -8,        /* any other error of the system */
  PVAS_ERR_TIMEOUT = -9,
  PVAS_ERR_LOST = -10, /* there is no such task (any more), or the space has ended */
  PVAS_ERR_INTERNAL = -11
};

/* The text of the last error of a call in this thread; "" if there was none.  Valid until the next
   call of this library in this thread that fails. */
PVAS_API const char* pvas_error_message(void) PVAS_NOEXCEPT;

/* ---- spaces and their tasks, from outside ------------------------------------------------- */

typedef struct pvas_space pvas_space;

/* The properties of a space; all zero, or NULL instead of options, selects the defaults. */
typedef struct pvas_options {
  int slice;        /* with slices > 1: which of that many equal parts of the addresses to use */
  int slices;       /* at most 8 */
  const int* cores; /* the only ones for its tasks, unless a program names others; NULL: the
                       caller's */
  size_t core_count;
  const char* group; /* of spaces of this user that share memory (pvas_share_alloc): a name of at
                        most 63 bytes; they have the same `slices` and different ones; NULL: none */
  int eager;         /* map all memory of the group at once, not at the first access */
} pvas_options;

/* Creates a space without tasks.  A process called pvas-root owns it, which is not a child of the
   caller.  If the group's slice has a space already, the handle refers to that one. */
PVAS_API int pvas_create(const pvas_options* options, pvas_space** space) PVAS_NOEXCEPT;

/* The space of which the caller is a task, to start further tasks in it. */
PVAS_API int pvas_own(pvas_space** space) PVAS_NOEXCEPT;

/* A file descriptor of the caller, and its number in the task. */
typedef struct pvas_file {
  int here;
  int there;
} pvas_file;

/* A program and its initial state.  Fields that are zero are inherited from the caller:
   environment, working directory, cores, and all files that exec(2) would leave open. */
typedef struct pvas_program {
  const char* file;       /* a path, or a name to look for in PATH; scripts are run by their
                             interpreter */
  char* const* arguments; /* ended by NULL; the first is the program's name; NULL: only the name */
  char* const* environment; /* ended by NULL */
  const char* folder;
  const pvas_file* files; /* with file_count: these and no others */
  size_t file_count;
  const int* cores;
  size_t core_count;
} pvas_program;

/* Starts a program as a task and returns its number, the smallest that is free.  The limits
   (getrlimit(2)), umask, signals that are ignored or blocked, and niceness are the caller's.
   PVAS_ERR_PROGRAM: the program cannot be a task, and the message has the reason. */
PVAS_API int pvas_spawn(pvas_space* space, const pvas_program* program, int* task) PVAS_NOEXCEPT;

/* Waits until a task that was started through `space` has ended, at most `timeout_ms` (negative: no
   limit), and returns its status like waitpid(2).  Its number is then free.  Several threads may
   wait for one task; each that waits when it ends gets its status. */
PVAS_API int pvas_wait(pvas_space* space, int task, int timeout_ms, int* status) PVAS_NOEXCEPT;

/* Sends a signal to a task that was started through `space`. */
PVAS_API int pvas_signal(pvas_space* space, int task, int signal) PVAS_NOEXCEPT;

/* The process ID of a task that was started through `space`.  It is not a child of the caller. */
PVAS_API pid_t pvas_process(pvas_space* space, int task) PVAS_NOEXCEPT;

/* Frees the handle; the tasks that were started through it and have not been waited for are killed.
   A space ends with its last handle and task. */
PVAS_API void pvas_destroy(pvas_space* space) PVAS_NOEXCEPT;

/* ---- from inside of a task ---------------------------------------------------------------- */

/* The caller's number in its space.  A child that it created by fork(2) is not a task. */
PVAS_API int pvas_self(void) PVAS_NOEXCEPT;

/* The number of tasks; stores the numbers of the first `room` of them, in order. */
PVAS_API int pvas_tasks(int* tasks, int room) PVAS_NOEXCEPT;

/* The addresses that belong to a task, whether it exists or not.  The task decides what is mapped
   there. */
PVAS_API int pvas_partition(int task, void** begin, size_t* size) PVAS_NOEXCEPT;

/* The task whose partition contains an address; PVAS_ERR_LOST if it is no task's. */
PVAS_API int pvas_owner(const void* address) PVAS_NOEXCEPT;

/* Gives memory a name of at most 63 bytes, for pvas_import; until the task ends, or removes it with
   pvas_withdraw.  The name is for the tasks of the space; if the memory is pvas_share_alloc's, for
   those of all spaces of the group. */
PVAS_API int pvas_export(const char* name, void* address, size_t size) PVAS_NOEXCEPT;
PVAS_API int pvas_withdraw(const char* name) PVAS_NOEXCEPT;

/* Finds memory by its name; waits for it at most `timeout_ms` (negative: no limit).  `size` and
   `owner` may be NULL; the owner is -1 if it is a task of another space. */
PVAS_API int pvas_import(const char* name, int timeout_ms, void** address, size_t* size,
                         int* owner) PVAS_NOEXCEPT;

/* Keeps another task's memory mapped, even if that task ends, until pvas_release.  Call it before a
   system call on addresses of a task that may be killed: otherwise the memory could by then belong
   to a later task.  PVAS_ERR_LOST: it has ended already. */
PVAS_API int pvas_hold(int task) PVAS_NOEXCEPT;
PVAS_API int pvas_release(int task) PVAS_NOEXCEPT;

/* ---- several spaces ----------------------------------------------------------------------- */

/* Memory that has one address in all spaces of the caller's group, aligned to the power of two that
   holds `size`, at most 64 KiB.  Its contents are undefined.  It stays until a task frees it, or
   until the last space of the group ends. */
PVAS_API int pvas_share_alloc(size_t size, void** address) PVAS_NOEXCEPT;

/* Frees it; any task of any space of the group may.  NULL: does nothing. */
PVAS_API int pvas_share_free(void* address) PVAS_NOEXCEPT;

/* The mapping of such memory in the caller's space, decided when the space was created. */
enum pvas_sharing_mode {
  PVAS_SHARING_NONE = 0, /* the space is in no group */
  PVAS_SHARING_LAZY = 1, /* each part is mapped at the first access (userfaultfd(2)) */
  PVAS_SHARING_EAGER =
      2, /* all of it is mapped: on request, or because the system refuses the other */
};
PVAS_API int pvas_sharing(void) PVAS_NOEXCEPT;

/* The number of spaces in the caller's group, including its own; stores the slices of the first
   `room` of them, in order. */
PVAS_API int pvas_spaces(int* slices, int room) PVAS_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
