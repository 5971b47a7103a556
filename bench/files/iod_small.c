// iod_small: small operations on files over I/O nodes.
//
//   iod_small reads PATH COUNT
//     one 4 KiB read after the other, and a raw TCP round trip of as much
//   iod_small list PATH REQUESTS
//     random 4 KiB requests: one list, one call each, and as many bytes over raw TCP
//   iod_small files DIR COUNT
//     creates COUNT striped files, writes a byte to each, closes, removes
//
// PATH and DIR are striped over the targets of the environment. Rounds of the sides alternate;
// a JSON object per figure.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shima/pff.h"

enum { rounds = 5, piece = 4096, file_bytes = 64 << 20 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void die(const char* what) {
  fprintf(stderr, "iod_small: %s: %s; %s\n", what, pff_error_message(), strerror(errno));
  exit(1);
}

static void report(const char* method, const char* op, double seconds, size_t count) {
  printf("{\"program\":\"iod_small\",\"method\":\"%s\",\"op\":\"%s\",\"us\":%.3f}\n", method, op,
         seconds * 1e6 / (double)count);
}

static uint64_t draw(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static pff_file* open_file(const char* path, size_t bytes) {
  pff_file* file;
  if (pff_open(path, PFF_READ | PFF_WRITE | PFF_CREATE, NULL,
               "striping_factor=2;striping_unit=65536", &file))
    die("open");
  char* memory = malloc(bytes);
  memset(memory, 'x', bytes);
  if (pff_write(file, pff_span(0, bytes), memory) != (int64_t)bytes) die("write");
  free(memory);
  return file;
}

// --- the same without Shima ---------------------------------------------------------------------

enum { part_bytes = 2 << 20 };

// What a server is asked: to receive the data that follow, then to answer.
struct demand {
  uint64_t data_bytes, answer_bytes;
  char rest[48];
};

static int with_no_delay(int socket) {
  int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

// Returns 0 if the other end has closed the connection.
static int move_all(int socket, char* data, size_t len, int sending) {
  for (size_t done = 0; done < len;) {
    ssize_t n = sending ? send(socket, data + done, len - done, MSG_NOSIGNAL)
                        : recv(socket, data + done, len - done, 0);
    if (n <= 0) return 0;
    done += (size_t)n;
  }
  return 1;
}

static size_t next_part(size_t len, size_t done) {
  return len - done < part_bytes ? len - done : part_bytes;
}

static void answer_all(int socket) {
  static char part[part_bytes];
  memset(part, 'z', sizeof part);
  struct demand demand;
  while (move_all(socket, (char*)&demand, sizeof demand, 0)) {
    for (size_t done = 0, n; (n = next_part(demand.data_bytes, done)) > 0; done += n)
      if (!move_all(socket, part, n, 0)) return;
    for (size_t done = 0, n; (n = next_part(demand.answer_bytes, done)) > 0; done += n)
      if (!move_all(socket, part, n, 1)) return;
  }
}

// A connection to a process that answers.
static int start_answering(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&at, len) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr*)&at, &len))
    die("listen");
  const pid_t server = fork();
  if (server < 0) die("fork");
  if (server == 0) {
    answer_all(with_no_delay(accept(listener, NULL, NULL)));
    _exit(0);
  }
  int client = with_no_delay(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(client, (struct sockaddr*)&at, len)) die("connect");
  close(listener);
  return client;
}

static void stop_answering(int socket) {
  shutdown(socket, SHUT_RDWR);  // the other server may have inherited it
  close(socket);
  wait(NULL);
}

static void ask(int socket, uint64_t data_bytes, uint64_t answer_bytes) {
  struct demand demand = {.data_bytes = data_bytes, .answer_bytes = answer_bytes};
  if (!move_all(socket, (char*)&demand, sizeof demand, 1)) die("send");
}

static void raw_round_trips(int socket, size_t count) {
  static char answer[piece];
  double started = now();
  for (size_t i = 0; i < count; i++) {
    ask(socket, 0, piece);
    if (!move_all(socket, answer, piece, 0)) die("receive");
  }
  report("raw TCP", "read", now() - started, count);
}

// As many bytes as a list has, one after the other, half of them over each of two connections.
static void raw_bytes(const int sockets[2], char* memory, size_t requests, int write) {
  size_t half = requests * piece / 2;
  char end;
  double started = now();
  for (int i = 0; i < 2; i++) ask(sockets[i], write ? half : 0, write ? 1 : half);
  for (size_t done = 0, n; (n = next_part(half, done)) > 0; done += n)
    for (int i = 0; i < 2; i++)
      if (!move_all(sockets[i], memory + (size_t)i * half + done, n, write)) die("move");
  for (int i = 0; write && i < 2; i++)
    if (!move_all(sockets[i], &end, 1, 0)) die("receive");
  report("raw TCP", write ? "write" : "read", now() - started, requests);
}

static void reads(const char* path, size_t count) {
  static char memory[piece];
  int socket = start_answering();
  pff_file* file = open_file(path, file_bytes);
  for (int round = 0; round < rounds; round++) {
    raw_round_trips(socket, count);
    double started = now();
    for (size_t i = 0; i < count; i++) {
      int64_t offset = (int64_t)(draw() % (file_bytes / piece)) * piece;
      if (pff_read(file, pff_span(offset, piece), memory) != piece) die("read");
    }
    report("Shima", "read", now() - started, count);
  }
  stop_answering(socket);
  if (pff_close(file) || pff_remove(path)) die("close");
}

// --- lists --------------------------------------------------------------------------------------

static void list(const char* path, size_t requests) {
  // Processes begun later would share the memory, which then were copied when it is written.
  const int sockets[2] = {start_answering(), start_answering()};
  size_t places = requests * 2, len = requests * piece;
  pff_file* file = open_file(path, places * piece);
  pff_piece* pieces = malloc(requests * sizeof *pieces);
  char* memory = malloc(len);
  // Different places, in random order: the number of places is even, so an odd step meets all.
  for (size_t i = 0; i < requests; i++)
    pieces[i] = (pff_piece){(int64_t)((i * 2654435761u) % places) * piece, piece};
  for (size_t i = requests - 1; i > 0; i--) {
    size_t other = draw() % (i + 1);
    pff_piece kept = pieces[i];
    pieces[i] = pieces[other];
    pieces[other] = kept;
  }
  memset(memory, 'y', len);
  for (int round = 0; round < rounds; round++)
    for (int write = 0; write < 2; write++) {
      raw_bytes(sockets, memory, requests, write);
      const char* op = write ? "write" : "read";
      double started = now();
      pff_where all = pff_list(pieces, requests);
      int64_t n = write ? pff_write(file, all, memory) : pff_read(file, all, memory);
      if (n != (int64_t)len) die("list");
      report("list", op, now() - started, requests);
      size_t some = requests / 20;
      started = now();
      for (size_t i = 0; i < some; i++) {
        pff_where one = pff_span(pieces[i].offset, piece);
        n = write ? pff_write(file, one, memory + i * piece)
                  : pff_read(file, one, memory + i * piece);
        if (n != piece) die("one call");
      }
      report("one call each", op, now() - started, some);
    }
  for (int i = 0; i < 2; i++) stop_answering(sockets[i]);
  if (pff_close(file) || pff_remove(path)) die("close");
}

// --- files --------------------------------------------------------------------------------------

static void files(const char* directory, size_t count) {
  char path[4096];
  double started = now();
  for (size_t i = 0; i < count; i++) {
    pff_file* file;
    snprintf(path, sizeof path, "%s/file-%zu", directory, i);
    if (pff_open(path, PFF_WRITE | PFF_CREATE, NULL, "striping_factor=2;striping_unit=65536",
                 &file))
      die("open");
    if (pff_write(file, pff_span(0, 1), "x") != 1 || pff_close(file)) die("write");
  }
  double made = now();
  for (size_t i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%s/file-%zu", directory, i);
    if (pff_remove(path)) die("remove");
  }
  report("files", "create, write, close", made - started, count);
  report("files", "remove", now() - made, count);
  report("files", "all", now() - started, count);
}

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  size_t count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
  if (count > 0 && !strcmp(argv[1], "reads")) return reads(argv[2], count), 0;
  if (count > 0 && !strcmp(argv[1], "list")) return list(argv[2], count), 0;
  if (count > 0 && !strcmp(argv[1], "files")) return files(argv[2], count), 0;
  fputs("usage: iod_small reads PATH COUNT | list PATH REQUESTS | files DIR COUNT\n", stderr);
  return 2;
}
