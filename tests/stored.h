// Reads a stored file without MPI and without Shima's code: a plain file by pread, a striped one by
// following docs/format.md. So the layout of striped files is checked against a second
// implementation. Supports subfiles beside the file, and on the targets that STORED_TARGETS names
// ("a=/directory:b=/directory"), which may be those of I/O nodes on this machine.
#ifndef SHIMA_TESTS_STORED_H
#define SHIMA_TESTS_STORED_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stored_region {
  long long begin, unit;
  int first, count;  // of its subfiles
};

struct stored_file {
  int plain;
  char path[4096];
  char id[40];
  int region_count;
  struct stored_region regions[16];
  char directories[64][512];  // of subfiles; empty: beside the file
};

static inline void stored_fail(const char* what, const char* path) {
  fprintf(stderr, "stored: %s: %s\n", path, what);
  abort();
}

static inline void stored_find_target(const char* name, char* directory, size_t size) {
  const char* list = getenv("STORED_TARGETS");
  const size_t length = strlen(name);
  for (; list != NULL; list = strchr(list, ':')) {
    if (*list == ':') ++list;
    if (strncmp(list, name, length) != 0 || list[length] != '=') continue;
    list += length + 1;
    snprintf(directory, size, "%.*s", (int)strcspn(list, ":"), list);
    return;
  }
  stored_fail("a target that STORED_TARGETS does not name", name);
}

static inline struct stored_file stored_open(const char* path) {
  struct stored_file file = {1, "", "", 0, {{0, 0, 0, 0}}, {""}};
  char line[65536];
  int subfiles = 0;
  FILE* stream = fopen(path, "r");
  if (stream == NULL) stored_fail("cannot be opened", path);
  snprintf(file.path, sizeof file.path, "%s", path);
  if (fgets(line, sizeof line, stream) && strcmp(line, "shima striped file, format 1\n") == 0)
    file.plain = 0;
  while (!file.plain && fgets(line, sizeof line, stream)) {
    struct stored_region* region = &file.regions[file.region_count];
    int used = 0;
    if (sscanf(line, "id %32s", file.id) == 1) continue;
    if (sscanf(line, "region %lld unit %lld targets %n", &region->begin, &region->unit, &used) != 2)
      continue;
    region->first = subfiles;
    for (char* word = strtok(line + used, " \n"); word != NULL; word = strtok(NULL, " \n")) {
      const int subfile = subfiles + region->count++;
      if (strcmp(word, "beside") == 0) continue;
      if (subfile >= 64) stored_fail("too many subfiles", path);
      stored_find_target(word, file.directories[subfile], sizeof file.directories[subfile]);
    }
    subfiles += region->count;
    ++file.region_count;
  }
  fclose(stream);
  return file;
}

static inline void stored_subfile_path(const struct stored_file* file, int subfile, char* path,
                                       size_t size) {
  if (subfile < 64 && file->directories[subfile][0] != 0) {
    snprintf(path, size, "%s/%s.%d", file->directories[subfile], file->id, subfile);
    return;
  }
  const char* slash = strrchr(file->path, '/');
  const int directory = slash == NULL ? 0 : (int)(slash - file->path) + 1;
  if ((size_t)snprintf(path, size, "%.*s.shima/%s.%d", directory, file->path, file->id, subfile) >=
      size)
    stored_fail("too long a name", file->path);
}

static inline long long stored_length(const char* path) {
  struct stat facts;
  if (stat(path, &facts) != 0) stored_fail("cannot be examined", path);
  return (long long)facts.st_size;
}

// The location of the byte at `offset`, and the number of bytes that follow it there.
static inline long long stored_place(const struct stored_file* file, long long offset, int* subfile,
                                     long long* follow) {
  int r = file->region_count - 1;
  while (file->regions[r].begin > offset) --r;
  const struct stored_region* region = &file->regions[r];
  const long long block = (offset - region->begin) / region->unit;
  const long long within = (offset - region->begin) % region->unit;
  *subfile = region->first + (int)(block % region->count);
  *follow = region->unit - within;
  if (r + 1 < file->region_count && file->regions[r + 1].begin - offset < *follow)
    *follow = file->regions[r + 1].begin - offset;
  return block / region->count * region->unit + within;
}

// The logical size: the end of the last byte in any subfile.
static inline long long stored_size(const char* path) {
  const struct stored_file file = stored_open(path);
  long long size = 0;
  if (file.plain) return stored_length(path);
  for (int r = 0; r < file.region_count; ++r) {
    const struct stored_region* region = &file.regions[r];
    for (int i = 0; i < region->count; ++i) {
      char name[4200];
      stored_subfile_path(&file, region->first + i, name, sizeof name);
      const long long last = stored_length(name) - 1;
      if (last < 0) continue;
      const long long block = last / region->unit * region->count + i;
      const long long end = region->begin + block * region->unit + last % region->unit + 1;
      if (end > size) size = end;
    }
  }
  return size;
}

// Like pread: fewer bytes only at the end of the file.
static inline long long stored_read(const char* path, void* buffer, long long len,
                                    long long offset) {
  const struct stored_file file = stored_open(path);
  const long long size = stored_size(path);
  long long done = 0;
  if (offset + len > size) len = size > offset ? size - offset : 0;
  memset(buffer, 0, (size_t)len);  // bytes in no subfile were never written
  while (done < len) {
    char name[4200];
    int subfile = 0;
    long long follow = len - done, at = offset + done;
    snprintf(name, sizeof name, "%s", path);
    if (!file.plain) {
      at = stored_place(&file, offset + done, &subfile, &follow);
      stored_subfile_path(&file, subfile, name, sizeof name);
    }
    const int fd = open(name, O_RDONLY);
    if (fd < 0) stored_fail("cannot be opened", name);
    if (follow > len - done) follow = len - done;
    if (pread(fd, (char*)buffer + done, (size_t)follow, (off_t)at) < 0)
      stored_fail("cannot be read", name);
    close(fd);
    done += follow;
  }
  return len;
}

#endif
