// A file system in user space that only passes calls on: passthrough_fs DIRECTORY MOUNT_POINT shows
// DIRECTORY, until it is unmounted.
//
// The reference for `shima mount`: the minimum that the same libfuse and kernel need for a copy.
// Data is moved by splice, and attributes are cached for a second, both as in libfuse's own
// examples.
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int directory;

static const char* relative(const char* path) { return path[1] == '\0' ? "." : path + 1; }
static int result(int code) { return code < 0 ? -errno : 0; }

static int pass_attributes(const char* path, struct stat* facts, struct fuse_file_info* info) {
  return result(info != NULL ? fstat((int)info->fh, facts)
                             : fstatat(directory, relative(path), facts, AT_SYMLINK_NOFOLLOW));
}

static int pass_open(const char* path, struct fuse_file_info* info) {
  const int fd = openat(directory, relative(path), info->flags | O_CLOEXEC);
  info->fh = (uint64_t)fd;
  return result(fd);
}

static int pass_create(const char* path, mode_t mode, struct fuse_file_info* info) {
  const int fd = openat(directory, relative(path), info->flags | O_CLOEXEC, mode);
  info->fh = (uint64_t)fd;
  return result(fd);
}

static int pass_read(const char* path, struct fuse_bufvec** buffers, size_t len, off_t offset,
                     struct fuse_file_info* info) {
  (void)path;
  *buffers = malloc(sizeof **buffers);
  if (*buffers == NULL) return -ENOMEM;
  **buffers = FUSE_BUFVEC_INIT(len);
  (*buffers)->buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  (*buffers)->buf[0].fd = (int)info->fh;
  (*buffers)->buf[0].pos = offset;
  return 0;
}

static int pass_write(const char* path, struct fuse_bufvec* buffers, off_t offset,
                      struct fuse_file_info* info) {
  (void)path;
  struct fuse_bufvec goal = FUSE_BUFVEC_INIT(fuse_buf_size(buffers));
  goal.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  goal.buf[0].fd = (int)info->fh;
  goal.buf[0].pos = offset;
  return (int)fuse_buf_copy(&goal, buffers, 0);
}

static int pass_release(const char* path, struct fuse_file_info* info) {
  (void)path;
  return result(close((int)info->fh));
}

static int pass_truncate(const char* path, off_t size, struct fuse_file_info* info) {
  if (info != NULL) return result(ftruncate((int)info->fh, size));
  const int fd = openat(directory, relative(path), O_WRONLY | O_CLOEXEC);
  const int code = fd < 0 ? -errno : result(ftruncate(fd, size));
  if (fd >= 0) close(fd);
  return code;
}

static int pass_unlink(const char* path) { return result(unlinkat(directory, relative(path), 0)); }

static const struct fuse_operations operations = {
    .getattr = pass_attributes,
    .open = pass_open,
    .create = pass_create,
    .read_buf = pass_read,
    .write_buf = pass_write,
    .release = pass_release,
    .truncate = pass_truncate,
    .unlink = pass_unlink,
};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return perror(argv[1]), 1;
  char* arguments[] = {argv[0], "-f", "-o", "fsname=shima-passthrough", argv[2]};
  return fuse_main(5, arguments, &operations, NULL);
}
