// The cache of an NFS client for one file, as simulated by nfs_like_fs.c.
//
// The rules (nfs(5), "Data and metadata coherence", and Linux's fs/nfs), each in its strictest
// reading:
//   - written bytes stay in the client's cache until it closes or syncs any of its descriptors of
//     the file;
//   - a read fetches whole pages once. They are valid until the first open of the file, or a lock,
//     finds that the file has changed on the server. Size and times are cached in the same way;
//   - a write to a part of a page fetches the page, and the whole page is written back, up to the
//     end of the file that the client knows, unless the client holds a lock. Under a lock only the
//     written bytes are written back.
// Real clients revalidate after some seconds; this one does not, so that no test passes by luck.
#ifndef SHIMA_TESTS_NFS_LIKE_CACHE_H
#define SHIMA_TESTS_NFS_LIKE_CACHE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { page_bytes = 4096 };
enum byte_state { absent, clean, dirty };

// A file on the server: the version of its contents, and the clients' caches of it.
struct server_file {
  ino_t inode;
  unsigned long version;
  struct client_file* clients;
  struct server_file* next;
};

struct client_file {
  unsigned long client;
  struct server_file* server;
  unsigned long version;  // of the server's contents when the clean bytes were read
  int opens;
  int locks;  // descriptors with a lock
  off_t size;
  unsigned char *data, *state;
  size_t capacity;
  struct client_file* next;
};

static struct server_file* all_files;

static struct server_file* server_file_of(ino_t inode) {
  struct server_file* file = all_files;
  while (file != NULL && file->inode != inode) file = file->next;
  if (file != NULL) return file;
  file = calloc(1, sizeof *file);
  if (file == NULL) abort();
  *file = (struct server_file){.inode = inode, .next = all_files};
  return all_files = file;
}

// Null if the client has never opened the file.
static struct client_file* find_client_file(unsigned long client, ino_t inode) {
  struct client_file* file = server_file_of(inode)->clients;
  while (file != NULL && file->client != client) file = file->next;
  return file;
}

static struct client_file* client_file_of(unsigned long client, ino_t inode) {
  struct client_file* file = find_client_file(client, inode);
  if (file != NULL) return file;
  struct server_file* server = server_file_of(inode);
  file = calloc(1, sizeof *file);
  if (file == NULL) abort();
  *file = (struct client_file){
      .client = client, .server = server, .version = server->version, .next = server->clients};
  return server->clients = file;
}

static int grow(struct client_file* file, size_t bytes) {
  if (bytes <= file->capacity) return 0;
  const size_t capacity = (bytes * 2 + page_bytes - 1) / page_bytes * page_bytes;
  unsigned char* data = realloc(file->data, capacity);
  if (data != NULL) file->data = data;
  unsigned char* state = realloc(file->state, capacity);
  if (state != NULL) file->state = state;
  if (data == NULL || state == NULL) return -ENOMEM;
  memset(data + file->capacity, 0, capacity - file->capacity);
  memset(state + file->capacity, absent, capacity - file->capacity);
  file->capacity = capacity;
  return 0;
}

// The end of the run of bytes in the same state as the one at `begin`.
static size_t run_end(const struct client_file* file, size_t begin, size_t end) {
  const unsigned char state = file->state[begin];
  while (begin < end && file->state[begin] == state) ++begin;
  return begin;
}

// A client's own change on the server does not invalidate its cache, unless it was stale before.
static void server_changed_by(struct client_file* file) {
  const int was_current = file->version == file->server->version;
  ++file->server->version;
  if (was_current) file->version = file->server->version;
}

// Writes the dirty bytes to the server, and no others. Returns 0 or -errno.
static int write_back(struct client_file* file, int fd) {
  int changed = 0;
  for (size_t begin = 0, end; begin < file->capacity; begin = end) {
    end = run_end(file, begin, file->capacity);
    if (file->state[begin] != dirty) continue;
    if (pwrite(fd, file->data + begin, end - begin, (off_t)begin) != (ssize_t)(end - begin))
      return errno != 0 ? -errno : -EIO;
    memset(file->state + begin, clean, end - begin);
    changed = 1;
  }
  if (changed) server_changed_by(file);
  return 0;
}

// Revalidation at the first open and at a lock: clean bytes of an older version are dropped, dirty
// bytes stay.
static int revalidate(struct client_file* file, int fd) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) return -errno;
  off_t dirty_end = 0;
  const int stale = file->version != file->server->version;
  for (size_t i = 0; i < file->capacity; ++i) {
    if (file->state[i] == dirty) dirty_end = (off_t)i + 1;
    if (file->state[i] == clean && stale) file->state[i] = absent;
  }
  file->version = file->server->version;
  file->size = facts.st_size > dirty_end ? facts.st_size : dirty_end;
  return 0;
}

// Fetches the absent bytes of the pages of [begin, end).
static int fetch(struct client_file* file, int fd, size_t begin, size_t end) {
  static unsigned char page[page_bytes];
  for (size_t at = begin / page_bytes * page_bytes; at < end; at += page_bytes) {
    if (memchr(file->state + at, absent, page_bytes) == NULL) continue;
    memset(page, 0, sizeof page);
    if (pread(fd, page, sizeof page, (off_t)at) < 0) return -errno;
    for (size_t i = 0; i < page_bytes; ++i) {
      if (file->state[at + i] != absent) continue;
      file->data[at + i] = page[i];
      file->state[at + i] = clean;
    }
  }
  return 0;
}

static int read_cached(struct client_file* file, int fd, char* buffer, size_t len, off_t offset) {
  if (offset >= file->size) return 0;
  if (len > (size_t)(file->size - offset)) len = (size_t)(file->size - offset);
  const size_t begin = (size_t)offset, end = begin + len;
  int code = grow(file, end);
  if (code == 0) code = fetch(file, fd, begin, end);
  if (code != 0) return code;
  memcpy(buffer, file->data + begin, len);
  return (int)len;
}

// Marks the bytes of one page that are dirty after a write to [begin, end) in it.
static int soil_page(struct client_file* file, int fd, size_t begin, size_t end) {
  const size_t page = begin / page_bytes * page_bytes, size = (size_t)file->size;
  const size_t known_end = size < page + page_bytes ? size : page + page_bytes;
  if (file->locks == 0 && page < size && end - begin < page_bytes) {
    const int code = fetch(file, fd, page, page + page_bytes);
    if (code != 0) return code;
  }
  memset(file->state + begin, dirty, end - begin);
  if (file->locks == 0)
    memset(file->state + page, dirty, (end > known_end ? end : known_end) - page);
  return 0;
}

static int write_cached(struct client_file* file, int fd, const char* buffer, size_t len,
                        off_t offset) {
  const size_t begin = (size_t)offset, end = begin + len;
  int code = grow(file, end);
  for (size_t at = begin, next; at < end && code == 0; at = next) {
    next = (at / page_bytes + 1) * page_bytes;
    if (next > end) next = end;
    code = soil_page(file, fd, at, next);
  }
  if (code != 0) return code;
  memcpy(file->data + begin, buffer, len);
  if ((off_t)end > file->size) file->size = (off_t)end;
  return (int)len;
}

// Setting the size is a call to the server; the client writes back its dirty bytes first.
static int truncate_cached(struct client_file* file, int fd, off_t size) {
  const int code = write_back(file, fd);
  if (code != 0) return code;
  if (ftruncate(fd, size) != 0) return -errno;
  server_changed_by(file);
  if ((size_t)size < file->capacity)
    memset(file->state + size, absent, file->capacity - (size_t)size);
  file->size = size;
  return 0;
}

#endif
