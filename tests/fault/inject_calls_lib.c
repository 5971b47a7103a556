/* RANKS: none
 * Makes one call of Shima to malloc or to the system fail: a library to preload.
 *
 * A call is Shima's if it returns into the library that defines MPI_File_open. Calls are
 * distinguished by their origin: a site is the kind of the call and up to eight return addresses
 * inside that library. The program under test records the sites that an operation visits, then
 * makes them fail one after the other. The product contains no code for this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#define MOST_SITES 8192

static uintptr_t text_begin, text_end;
static volatile int recording, armed, sticky, fired;
static volatile uint64_t armed_site;
static volatile int armed_nth;
static struct {
  uint64_t site;
  const char* kind;
  int count;
} sites[MOST_SITES];
static volatile int site_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static uintptr_t fired_at[8];

static int find_text(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const uintptr_t wanted = (uintptr_t)data;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type != PT_LOAD || wanted < begin || wanted >= end) continue;
    text_begin = begin;
    text_end = end;
    return 1;
  }
  return 0;
}

struct walk {
  uint64_t hash;
  int frames;
  uintptr_t at[8];
};

static _Unwind_Reason_Code step(struct _Unwind_Context* context, void* data) {
  struct walk* walk = data;
  const uintptr_t ip = _Unwind_GetIP(context);
  if (ip < text_begin || ip >= text_end)
    return walk->frames > 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
  walk->hash = (walk->hash ^ (ip - text_begin)) * 0x100000001b3u;
  walk->at[walk->frames] = ip;
  return ++walk->frames == 8 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static uint64_t site_here(const char* kind, uintptr_t at[8]) {
  struct walk walk = {0xcbf29ce484222325u, 0, {0}};
  for (const char* c = kind; *c != 0; ++c)
    walk.hash = (walk.hash ^ (unsigned char)*c) * 0x100000001b3u;
  _Unwind_Backtrace(step, &walk);
  memcpy(at, walk.at, sizeof walk.at);
  return walk.hash;
}

static void record(uint64_t site, const char* kind) {
  for (int i = 0; i < site_count; ++i) {
    if (sites[i].site != site) continue;
    ++sites[i].count;
    return;
  }
  if (site_count == MOST_SITES) return;
  sites[site_count].site = site;
  sites[site_count].kind = kind;
  sites[site_count].count = 1;
  ++site_count;
}

/* Whether the call that returns to `to` must fail. */
static int fails(const char* kind, void* to, int allocates) {
  if (!recording && !armed) return 0;
  if ((uintptr_t)to < text_begin || (uintptr_t)to >= text_end || inside) return 0;
  inside = 1;
  const int saved = errno;
  int failing = 0;
  if (fired && sticky && allocates && armed) {
    failing = 1;
  } else {
    uintptr_t at[8];
    const uint64_t site = site_here(kind, at);
    pthread_mutex_lock(&lock);
    if (recording) record(site, kind);
    if (armed && !fired && site == armed_site && --armed_nth == 0) {
      failing = fired = 1;
      memcpy(fired_at, at, sizeof at);
    }
    pthread_mutex_unlock(&lock);
  }
  errno = saved;
  inside = 0;
  return failing;
}

/* The interface for the program under test. inject_begin returns 0 if MPI_File_open is not Shima's.
 */
int inject_begin(void) {
  if (text_begin == 0) {
    void* open = dlsym(RTLD_DEFAULT, "MPI_File_open");
    Dl_info info;
    uintptr_t at[8];
    if (dladdr(open, &info) == 0 || strstr(info.dli_fname, "/libshima-") == NULL) return 0;
    dl_iterate_phdr(find_text, open);
    site_here("warm", at);
  }
  site_count = 0;
  recording = 1;
  return text_begin != 0;
}
int inject_end(void) {
  recording = 0;
  return site_count;
}
uint64_t inject_site(int i, const char** kind, int* count) {
  *kind = sites[i].kind;
  *count = sites[i].count;
  return sites[i].site;
}
void inject_arm(uint64_t site, int nth, int all_after) {
  armed_site = site;
  armed_nth = nth;
  sticky = all_after;
  fired = 0;
  armed = 1;
}
int inject_disarm(void) {
  armed = 0;
  return fired;
}
/* The place of the failed call, for addr2line. */
void inject_where(char* text, size_t len) {
  Dl_info info;
  size_t used = 0;
  text[0] = 0;
  if (dladdr((void*)text_begin, &info) == 0) return;
  used = (size_t)snprintf(text, len, "addr2line -Cfpie %s", info.dli_fname);
  for (int i = 0; i < 8 && used < len && fired_at[i] != 0; ++i)
    used += (size_t)snprintf(text + used, len - used, " %zx",
                             fired_at[i] - 1 - (uintptr_t)info.dli_fbase);
}

#define FAIL(kind, with, result)                       \
  do {                                                 \
    if (fails(kind, __builtin_return_address(0), 0)) { \
      errno = with;                                    \
      return result;                                   \
    }                                                  \
  } while (0)
#define NO_MEMORY(kind)                                \
  do {                                                 \
    if (fails(kind, __builtin_return_address(0), 1)) { \
      errno = ENOMEM;                                  \
      return NULL;                                     \
    }                                                  \
  } while (0)
#define REAL(name) ((__typeof__(&name))real(#name))

static void* real(const char* name) {
  ++inside;
  void* found = dlsym(RTLD_NEXT, name);
  --inside;
  return found;
}

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  NO_MEMORY("malloc");
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t m) {
  NO_MEMORY("calloc");
  return __libc_calloc(n, m);
}
void* realloc(void* p, size_t n) {
  NO_MEMORY("realloc");
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t a, size_t n) {
  NO_MEMORY("aligned_alloc");
  return __libc_memalign(a, n);
}

/* Calls that only query or release (close, munmap, sched_*, futex and the like) never fail here. */
#define WRAP(type, name, with, parameters, arguments) \
  type name parameters {                              \
    static __typeof__(&name) next;                    \
    FAIL(#name, with, (type) - 1);                    \
    if (next == NULL) next = REAL(name);              \
    return next arguments;                            \
  }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  FAIL("open", EMFILE, -1);
  return ((int (*)(const char*, int, ...))real("open"))(path, flags, mode);
}
int openat(int dir, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = va_arg(rest, int);
  va_end(rest);
  FAIL("openat", EMFILE, -1);
  return ((int (*)(int, const char*, int, ...))real("openat"))(dir, path, flags, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  FAIL("fopen", EMFILE, NULL);
  return ((FILE * (*)(const char*, const char*)) real("fopen64"))(path, mode);
}
void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) {
  FAIL("mmap", ENOMEM, MAP_FAILED);
  return (void*)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
WRAP(ssize_t, read, EIO, (int fd, void* to, size_t n), (fd, to, n))
WRAP(ssize_t, pread, EIO, (int fd, void* to, size_t n, off_t at), (fd, to, n, at))
WRAP(ssize_t, preadv, EIO, (int fd, const struct iovec* v, int n, off_t at), (fd, v, n, at))
WRAP(ssize_t, preadv2, EIO, (int fd, const struct iovec* v, int n, off_t at, int f),
     (fd, v, n, at, f))
WRAP(ssize_t, pwrite, ENOSPC, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at))
WRAP(ssize_t, pwritev, ENOSPC, (int fd, const struct iovec* v, int n, off_t at), (fd, v, n, at))
WRAP(ssize_t, write, EIO, (int fd, const void* from, size_t n), (fd, from, n))
WRAP(int, fsync, EIO, (int fd), (fd))
WRAP(int, ftruncate, EIO, (int fd, off_t n), (fd, n))
WRAP(int, fstat, EIO, (int fd, struct stat* to), (fd, to))
WRAP(int, stat, EIO, (const char* path, struct stat* to), (path, to))
WRAP(int, fstatat, EIO, (int d, const char* path, struct stat* to, int f), (d, path, to, f))
WRAP(int, memfd_create, EMFILE, (const char* name, unsigned flags), (name, flags))
WRAP(int, socket, EMFILE, (int a, int b, int c), (a, b, c))
WRAP(int, connect, ECONNREFUSED, (int fd, const struct sockaddr* a, socklen_t n), (fd, a, n))
WRAP(int, bind, EADDRINUSE, (int fd, const struct sockaddr* a, socklen_t n), (fd, a, n))
WRAP(int, listen, EADDRINUSE, (int fd, int n), (fd, n))
WRAP(int, accept4, EMFILE, (int fd, struct sockaddr* a, socklen_t* n, int f), (fd, a, n, f))
WRAP(ssize_t, send, ECONNRESET, (int fd, const void* from, size_t n, int f), (fd, from, n, f))
WRAP(ssize_t, recv, ECONNRESET, (int fd, void* to, size_t n, int f), (fd, to, n, f))
WRAP(int, eventfd, EMFILE, (unsigned n, int f), (n, f))
WRAP(int, link, EIO, (const char* a, const char* b), (a, b))
WRAP(int, unlink, EIO, (const char* a), (a))
WRAP(int, unlinkat, EIO, (int d, const char* a, int f), (d, a, f))
WRAP(int, rename, EIO, (const char* a, const char* b), (a, b))
WRAP(int, mkdir, EIO, (const char* a, mode_t m), (a, m))
WRAP(ssize_t, getrandom, ENOSYS, (void* to, size_t n, unsigned f), (to, n, f))

ssize_t process_vm_readv(pid_t pid, const struct iovec* l, unsigned long ln, const struct iovec* r,
                         unsigned long rn, unsigned long f) {
  FAIL("process_vm_readv", ENOMEM, -1);
  return syscall(SYS_process_vm_readv, pid, l, ln, r, rn, f);
}
ssize_t process_vm_writev(pid_t pid, const struct iovec* l, unsigned long ln, const struct iovec* r,
                          unsigned long rn, unsigned long f) {
  FAIL("process_vm_writev", ENOMEM, -1);
  return syscall(SYS_process_vm_writev, pid, l, ln, r, rn, f);
}
int posix_fallocate(int fd, off_t at, off_t n) {
  if (fails("posix_fallocate", __builtin_return_address(0), 0)) return ENOSPC;
  return ((int (*)(int, off_t, off_t))real("posix_fallocate"))(fd, at, n);
}
int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*run)(void*), void* with) {
  if (fails("pthread_create", __builtin_return_address(0), 0)) return EAGAIN;
  static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (next == NULL) next = (__typeof__(next))real("pthread_create");
  return next(made, how, run, with);
}
