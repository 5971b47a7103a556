// RANKS: none
// The library that mount_short_calls.py preloads into the mount: system calls that fail or do
// nothing, and a user who replaces a newly created file by another one.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

ssize_t pwritev2(int fd, const struct iovec* pieces, int count, off_t offset, int flags) {
  (void)fd, (void)pieces, (void)count, (void)offset, (void)flags;
  return 0;
}
ssize_t pwritev64v2(int fd, const struct iovec* pieces, int count, off64_t offset, int flags) {
  return pwritev2(fd, pieces, count, offset, flags);
}

int dup(int fd) {
  (void)fd;
  errno = EMFILE;
  return -1;
}

// A file system that sends what was written when the file is synced or closed, and cannot.
int fstatfs(int fd, struct statfs* facts) {
  int (*real)(int, struct statfs*) = (int (*)(int, struct statfs*))dlsym(RTLD_NEXT, "fstatfs");
  const int code = real(fd, facts);
  if (code == 0) facts->f_type = 0x6969;  // NFS
  return code;
}
int fstatfs64(int fd, struct statfs64* facts) {
  int (*real)(int, struct statfs64*) =
      (int (*)(int, struct statfs64*))dlsym(RTLD_NEXT, "fstatfs64");
  const int code = real(fd, facts);
  if (code == 0) facts->f_type = 0x6969;
  return code;
}
int fsync(int fd) {
  (void)fd;
  errno = ENOSPC;
  return -1;
}

int mknodat(int directory, const char* name, mode_t mode, dev_t device) {
  int (*real)(int, const char*, mode_t, dev_t) =
      (int (*)(int, const char*, mode_t, dev_t))dlsym(RTLD_NEXT, "mknodat");
  const char* victim = getenv("SHIMA_TEST_VICTIM");
  int made = real(directory, name, mode, device);
  if (made != 0 || victim == NULL) return made;
  if (unlinkat(directory, name, 0) != 0) return -1;
  return linkat(AT_FDCWD, victim, directory, name, 0);
}
