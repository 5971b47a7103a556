// RANKS: none
// (compiled by nfs_like.py) A file system in user space that caches data like Linux's NFS client:
// nfs_like_fs DIRECTORY MOUNT_POINT [process|host] shows DIRECTORY.
//
// Every process that opens a file (or every host: every network namespace) is a client with its own
// cache (nfs_like_cache.h), although all run on one kernel: files are opened for direct access, so
// that the kernel caches nothing that clients could share, and each call is answered from the cache
// of the client that opened the descriptor. Locks are granted at once and exclude no client: the
// tests take none at the same time. The file system serves one call at a time and runs in the
// foreground until it is unmounted.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "nfs_like_cache.h"

static int directory;  // the directory shown
static int by_host;

struct opened {
  int fd;
  struct client_file* file;
  int locked;
  uint64_t locker;
};

static struct opened* opened_in(const struct fuse_file_info* info) {
  return (struct opened*)(uintptr_t)info->fh;
}

static const char* relative(const char* path) { return path[1] == '\0' ? "." : path + 1; }

// FUSE reports the thread; the client is found by its process or its network namespace.
static unsigned long this_client(void) {
  const int thread = fuse_get_context()->pid;
  char name[64], text[64] = "";
  unsigned long client = (unsigned long)thread;
  snprintf(name, sizeof name, by_host ? "/proc/%d/ns/net" : "/proc/%d/status", thread);
  if (by_host) {
    if (readlink(name, text, sizeof text - 1) < 0 || sscanf(text, "net:[%lu]", &client) != 1)
      perror(name);
    return client;
  }
  FILE* status = fopen(name, "r");
  char line[256];
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "Tgid: %lu", &client) == 1) break;
  if (status != NULL) fclose(status);
  return client;
}

static int attach(struct fuse_file_info* info, int fd) {
  struct stat facts;
  struct opened* opened = malloc(sizeof *opened);
  if (fd < 0 || opened == NULL || fstat(fd, &facts) != 0) return -errno;
  *opened = (struct opened){fd, client_file_of(this_client(), facts.st_ino), 0, 0};
  info->fh = (uintptr_t)opened;
  info->direct_io = 1;
  return opened->file->opens++ == 0 ? revalidate(opened->file, fd) : 0;
}

// A write may read its pages first, so every file is opened for reading and writing.
static int nfs_open(const char* path, struct fuse_file_info* info) {
  return attach(info, openat(directory, relative(path), O_RDWR | O_CLOEXEC));
}

static int nfs_create(const char* path, mode_t mode, struct fuse_file_info* info) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (info->flags & O_EXCL);
  return attach(info, openat(directory, relative(path), flags, mode));
}

static int nfs_read(const char* path, char* buffer, size_t len, off_t offset,
                    struct fuse_file_info* info) {
  (void)path;
  return read_cached(opened_in(info)->file, opened_in(info)->fd, buffer, len, offset);
}

static int nfs_write(const char* path, const char* buffer, size_t len, off_t offset,
                     struct fuse_file_info* info) {
  (void)path;
  return write_cached(opened_in(info)->file, opened_in(info)->fd, buffer, len, offset);
}

static int nfs_flush(const char* path, struct fuse_file_info* info) {  // at every close
  (void)path;
  return write_back(opened_in(info)->file, opened_in(info)->fd);
}

static int nfs_fsync(const char* path, int data_only, struct fuse_file_info* info) {
  (void)data_only;
  return nfs_flush(path, info);
}

static int nfs_release(const char* path, struct fuse_file_info* info) {
  struct opened* opened = opened_in(info);
  const int code = nfs_flush(path, info);
  --opened->file->opens;
  opened->file->locks -= opened->locked;
  close(opened->fd);
  free(opened);
  return code;
}

// A client with the file open reports the size in its cache.
static int nfs_getattr(const char* path, struct stat* facts, struct fuse_file_info* info) {
  (void)info;
  if (fstatat(directory, relative(path), facts, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  const struct client_file* file = find_client_file(this_client(), facts->st_ino);
  if (file != NULL && file->opens > 0) facts->st_size = file->size;
  return 0;
}

static int nfs_truncate(const char* path, off_t size, struct fuse_file_info* info) {
  if (info != NULL) return truncate_cached(opened_in(info)->file, opened_in(info)->fd, size);
  struct stat facts;
  const int fd = openat(directory, relative(path), O_RDWR | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &facts) != 0) return -errno;
  const int code = truncate_cached(client_file_of(this_client(), facts.st_ino), fd, size);
  close(fd);
  return code;
}

static int nfs_unlink(const char* path) {
  struct stat facts;
  if (fstatat(directory, relative(path), &facts, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  if (unlinkat(directory, relative(path), 0) != 0) return -errno;
  ++server_file_of(facts.st_ino)->version;  // the inode number may be reused
  return 0;
}

static int nfs_rename(const char* from, const char* to, unsigned flags) {
  return renameat2(directory, relative(from), directory, relative(to), flags) == 0 ? 0 : -errno;
}

// A lock and its release write back; a lock also revalidates. At every close libfuse releases the
// locks of the process, but not those of the open file description.
static int nfs_lock(const char* path, struct fuse_file_info* info, int command,
                    struct flock* lock) {
  struct opened* opened = opened_in(info);
  (void)path;
  if (command == F_GETLK) return -ENOLCK;
  const int code = write_back(opened->file, opened->fd);
  if (code != 0) return code;
  const int locked = lock->l_type != F_UNLCK;
  if (!locked && info->lock_owner != opened->locker) return 0;
  opened->file->locks += locked - opened->locked;
  opened->locked = locked;
  opened->locker = info->lock_owner;
  return locked ? revalidate(opened->file, opened->fd) : 0;
}

static void* nfs_init(struct fuse_conn_info* connection, struct fuse_config* config) {
  (void)connection;
  config->use_ino = 1;
  config->hard_remove = 1;
  config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
  return NULL;
}

static const struct fuse_operations operations = {
    .init = nfs_init,
    .getattr = nfs_getattr,
    .open = nfs_open,
    .create = nfs_create,
    .read = nfs_read,
    .write = nfs_write,
    .flush = nfs_flush,
    .fsync = nfs_fsync,
    .release = nfs_release,
    .unlink = nfs_unlink,
    .rename = nfs_rename,
    .lock = nfs_lock,
    .truncate = nfs_truncate,
};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  directory = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return perror(argv[1]), 1;
  by_host = argc > 3 && strcmp(argv[3], "host") == 0;
  char* arguments[] = {argv[0], "-f", "-s", "-o", "fsname=shima-nfs-like", argv[2]};
  return fuse_main(6, arguments, &operations, NULL);
}
