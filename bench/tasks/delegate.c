// delegate: the cost of an operation by another task, and the size from which it is small.
//
//   shima pvas run -n 2 delegate spin|sleep apart|together PATH
//
// Task 0 serves. Task 1 sends requests and prints a JSON object per figure: the round trip of an
// empty request; copying a payload of some size into the delegatee's memory, inline and by address;
// and writing to a file in the page cache, by task 1 itself and by the delegatee, inline and by
// address.
// `apart`: each on its own core. The bytes written are compared.
#include "tasks.h"

#include <fcntl.h>
#include <string.h>

#include "shima/delegate.h"

enum { rounds = 151, largest = 1 << 20, most_inline = 4096, file_bytes = 4 << 20 };
enum { op_nothing = DELEGATE_FIRST_OPERATION, op_copy, op_stop };
enum way { own, by_value, by_address };

static const char* const way_names[] = {"own", "inline", "by address"};
static const char *waiting, *place, *path;
static int file_there, file_here;
static unsigned char payload[largest], copied[largest];
static delegate_seat* seats[3];  // by way

// ---- the delegatee -----------------------------------------------------------------------------

static int64_t do_nothing(void* context, const delegate_job* job) {
  (void)context, (void)job;
  return 0;
}

static int64_t do_copy(void* context, const delegate_job* job) {
  (void)context;
  memcpy(copied, job->data, job->size);
  return 0;
}

static int64_t do_stop(void* context, const delegate_job* job) {
  (void)job;
  delegate_stop(context);
  return 0;
}

static void serve(const delegate_options* options) {
  delegate_desk* desk;
  file_there = open(path, O_RDWR | O_CREAT, 0600);
  if (file_there < 0 || delegate_open("bench", options, &desk) ||
      delegate_offer(desk, op_nothing, do_nothing, NULL) ||
      delegate_offer(desk, op_copy, do_copy, NULL) || delegate_offer(desk, op_stop, do_stop, desk))
    die("opening");
  if (pvas_export("file", &file_there, sizeof file_there)) die("export");
  if (delegate_serve(desk, -1) < 0) die("serve");
  delegate_close(desk);
}

// ---- the requester -----------------------------------------------------------------------------

static int64_t ask(enum way way, int operation, size_t bytes) {
  return delegate_call(
      seats[way],
      &(delegate_request){
          .operation = operation, .data = payload, .size = bytes, .direction = DELEGATE_OUT});
}

static void nothing(enum way way, size_t bytes, int64_t offset) {
  (void)offset;
  if (ask(way, op_nothing, bytes) < 0) die("nothing");
}

// The payload was just written, so it is in the requester's cache; the ways differ in how the
// delegatee gets it from there.
static void copy(enum way way, size_t bytes, int64_t offset) {
  (void)offset;
  for (size_t i = 0; i < bytes; i += 64) payload[i]++;
  if (ask(way, op_copy, bytes) < 0) die("copy");
}

static void write_file(enum way way, size_t bytes, int64_t offset) {
  int64_t n = way == own ? pwrite(file_here, payload, bytes, offset)
                         : delegate_write(seats[way], file_there, payload, bytes, offset);
  if (n != (int64_t)bytes) die("write");
}

// Each round has so many calls that it takes a fraction of a millisecond, so that most rounds are
// not interrupted; returns the median round.
static double measure(void (*call)(enum way, size_t, int64_t), enum way way, size_t bytes) {
  double ns[rounds], started = now_ns();
  int64_t count = 0, slots = file_bytes / (int64_t)(bytes ? bytes : 1);
  for (; now_ns() - started < 2e5; count++) call(way, bytes, count % slots * (int64_t)bytes);
  for (int round = 0; round < rounds; round++) {
    started = now_ns();
    for (int64_t i = 0; i < count; i++) call(way, bytes, i % slots * (int64_t)bytes);
    ns[round] = (now_ns() - started) / (double)count;
  }
  return median_of(ns, rounds);
}

static void report(const char* thing, enum way way, size_t bytes, double ns, int wrong) {
  printf(
      "{\"program\":\"delegate\",\"thing\":\"%s\",\"way\":\"%s\",\"bytes\":%zu,\"ns\":%.1f,"
      "\"waiting\":\"%s\",\"place\":\"%s\",\"wrong_bytes\":%d}\n",
      thing, way_names[way], bytes, ns, waiting, place, wrong);
}

// Writes new bytes at the start of the file and counts the wrong ones there.
static int wrong_bytes(enum way way, size_t bytes) {
  static unsigned char there[largest];
  int wrong = 0;
  for (size_t i = 0; i < bytes; i++) payload[i] = (unsigned char)(payload[i] * 5 + i + 1);
  write_file(way, bytes, 0);
  if (pread(file_here, there, bytes, 0) != (ssize_t)bytes) return (int)bytes;
  for (size_t i = 0; i < bytes; i++) wrong += there[i] != payload[i];
  return wrong;
}

static void compare_ways(void) {
  for (size_t bytes = 1; bytes <= largest; bytes *= 4)
    for (enum way way = own; way <= by_address; way++) {
      if (way == by_value && bytes > most_inline) continue;
      if (way != own) report("copy", way, bytes, measure(copy, way, bytes), 0);
      double ns = measure(write_file, way, bytes);
      report("write", way, bytes, ns, wrong_bytes(way, bytes));
    }
}

static void request(delegate_options options) {
  void* file;
  options.inline_bytes = most_inline;
  if (delegate_join("bench", 10000, &options, &seats[by_value])) die("join");
  options.inline_bytes = -1;
  if (delegate_join("bench", 10000, &options, &seats[by_address])) die("join");
  if (pvas_import("file", 10000, &file, NULL, NULL)) die("import");
  file_there = *(int*)file;
  file_here = open(path, O_RDWR);
  memset(payload, 1, sizeof payload);
  for (int64_t at = 0; at < file_bytes; at += largest) write_file(own, largest, at);
  report("round trip", by_value, 0, measure(nothing, by_value, 0), 0);
  compare_ways();
  if (ask(by_value, op_stop, 0) < 0) die("stop");
  delegate_leave(seats[by_address]);
  delegate_leave(seats[by_value]);
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "delegate spin|sleep apart|together PATH\n"), 2;
  waiting = argv[1], place = argv[2], path = argv[3];
  int self = pvas_self();
  if (self < 0) die("not a task");
  pin(strcmp(place, "apart") == 0 ? self : 0);
  delegate_options options = {.spin_us = strcmp(waiting, "spin") == 0 ? 1000000 : 0};
  if (self == 0)
    serve(&options);
  else
    request(options);
  return 0;
}
