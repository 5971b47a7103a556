/*
 * RANKS: none
 *
 * A requester for delegate_net.sh, which is not linked with MPI.
 *
 *   delegate_net_task RANK RANKS MEMBERS INDEX WHAT ROUNDS SEED
 *
 * All requesters draw the same random numbers, so each knows the steps of all others; bytes are
 * derived from the sender and the round.  Exits with 0, or prints the check that failed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shima/delegate_net.h"

enum { most = 200000, most_all = 64, most_pieces = 40 };

static int rank, ranks, members, index_here, self, all, rounds;
static unsigned dice_state;
static delegate_seat* seat;
static unsigned char out[most], in[most], exposed[most];

#define MUST(condition)                                                                          \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "requester %d of rank %d, line %d: %s (%s)\n", index_here, rank, __LINE__, \
              #condition, pvas_error_message());                                                 \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

static unsigned draw(unsigned limit) {
  dice_state = dice_state * 1664525u + 1013904223u;
  return (unsigned)((unsigned long long)(dice_state >> 4) * limit >> 28);
}

/* Many are small and are sent in the request; some are large and are passed by address. */
static size_t draw_size(void) {
  const unsigned kind = draw(4);
  const unsigned limit = kind == 0 ? most : kind == 1 ? 6000 : 400;
  return draw(limit);
}

static unsigned char byte_of(int who, int round, size_t i) {
  return (unsigned char)(who * 37 + round * 11 + (int)(i % 251) + (int)(i / 1000));
}

static void fill(unsigned char* data, size_t size, int who, int round) {
  for (size_t i = 0; i < size; i++) data[i] = byte_of(who, round, i);
}

static void expect(const unsigned char* data, size_t size, int who, int round) {
  for (size_t i = 0; i < size; i++) MUST(data[i] == byte_of(who, round, i));
}

/* The receiver of each sender: a random order of all. */
static void draw_partners(int* to, int* from) {
  int order[most_all];
  for (int i = 0; i < all; i++) order[i] = i;
  for (int i = all - 1; i > 0; i--) {
    const int j = (int)draw((unsigned)i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (int i = 0; i < all; i++) {
    if (order[i] == self) *to = order[(i + 1) % all];
    if (order[(i + 1) % all] == self) *from = order[i];
  }
}

static void messages(void) {
  for (int round = 0; round < rounds; round++) {
    int to = 0, from = 0;
    size_t sizes[most_all];
    draw_partners(&to, &from);
    for (int i = 0; i < all; i++) sizes[i] = draw_size();
    fill(out, sizes[self], self, round);
    memset(in, 0, sizeof in);
    const delegate_request send = {
        DELEGATE_SEND, {to / members, to * all + self, 0}, out, sizes[self], DELEGATE_OUT};
    uint64_t number;
    MUST(delegate_start(seat, &send, &number) == 0);
    const size_t room = sizes[from] + draw(2) * 100 > most ? most : sizes[from] + 100;
    const int64_t came = delegate_receive(seat, in, room, from / members, self * all + from);
    MUST(came == (int64_t)sizes[from]);
    expect(in, sizes[from], from, round);
    MUST(delegate_wait(seat, number) == (int64_t)sizes[self]);
  }
  MUST(delegate_send(seat, out, 1, ranks, 0) == PVAS_ERR_ARGUMENT);
  MUST(delegate_put(seat, out, 1, 0, 0) < 0); /* no window was requested */
}

/* Each writes to a part of the next one's memory, whose address arrives in a message. */
static void puts_to_memory(void) {
  const int next = (self + 1) % all, last = (self + all - 1) % all;
  unsigned char* there = NULL;
  unsigned char* here = exposed;
  MUST(delegate_expose(seat, exposed, sizeof exposed) == 0);
  MUST(delegate_send(seat, &here, sizeof here, last / members, last) == 0 + sizeof here);
  MUST(delegate_receive(seat, &there, sizeof there, next / members, self) == sizeof there);
  for (int round = 0; round < rounds; round++) {
    const size_t size = draw_size() / 2, at = draw(most / 2);
    fill(out, size, self, round);
    memset(exposed, 0, sizeof exposed);
    MUST(delegate_barrier(seat) == 0);
    MUST(delegate_put(seat, out, size, next / members, (uint64_t)(uintptr_t)(there + at)) ==
         (int64_t)size);
    MUST(delegate_barrier(seat) == 0);
    expect(exposed + at, size, last, round);
    for (size_t i = 0; i < most; i++) MUST((i >= at && i < at + size) || exposed[i] == 0);
    MUST(delegate_barrier(seat) == 0);
  }
  MUST(delegate_conceal(seat, exposed) == 0);
  MUST(delegate_conceal(seat, exposed) == PVAS_ERR_NO_SUCH_FILE);
}

static void reduce(int round) {
  double numbers[1000];
  int64_t wholes[7];
  const size_t count = draw(1000);
  for (size_t i = 0; i < count; i++) numbers[i] = (double)self + (double)i * round;
  MUST(delegate_allreduce(seat, numbers, count, DELEGATE_DOUBLE, DELEGATE_SUM) == 0);
  for (size_t i = 0; i < count; i++)
    MUST(numbers[i] == all * (all - 1) / 2 + (double)all * (double)i * round);
  for (int i = 0; i < 7; i++) wholes[i] = (self * 7 + i * 3 + round) % 23 - 11;
  const enum delegate_reduction reduction = draw(2) ? DELEGATE_MIN : DELEGATE_MAX;
  MUST(delegate_allreduce(seat, wholes, 7, DELEGATE_INT64, reduction) == 0);
  for (int i = 0; i < 7; i++) {
    int64_t best = reduction == DELEGATE_MIN ? 100 : -100;
    for (int who = 0; who < all; who++) {
      const int64_t one = (who * 7 + i * 3 + round) % 23 - 11;
      if (reduction == DELEGATE_MIN ? one < best : one > best) best = one;
    }
    MUST(wholes[i] == best);
  }
}

static void collectives(void) {
  for (int round = 0; round < rounds; round++) {
    const int source = (int)draw((unsigned)all);
    const size_t size = draw_size();
    fill(in, size, self == source ? source : self + 100, round);
    MUST(delegate_broadcast(seat, in, size, source / members, self == source) == 0);
    expect(in, size, source, round);
    reduce(round);
    MUST(delegate_barrier(seat) == 0);
  }
  /* Different calls: an error for all, and the next call works. */
  MUST(delegate_broadcast(seat, in, self == 0 ? 8 : 4, 0, self == 0) == PVAS_ERR_ARGUMENT);
  MUST(delegate_allreduce(seat, in, 1, (enum delegate_type)9, DELEGATE_SUM) == PVAS_ERR_ARGUMENT);
  MUST(delegate_barrier(seat) == 0);
}

/* The bytes of a file, in blocks of random sizes, each owned by a random requester. */
static void files(void) {
  int64_t end = 0;
  for (int round = 0; round < rounds; round++) {
    delegate_piece mine[most_pieces];
    size_t count = 0, used = 0;
    int64_t at = 0, total = 0;
    for (int block = 0; block < most_pieces; block++) {
      const size_t size = draw(8) == 0 ? draw(4000) : draw(100);
      const int whose = (int)draw((unsigned)all + 1); /* all: a hole */
      if (whose == self) {
        mine[count++] = (delegate_piece){at, out + used, size};
        for (size_t i = 0; i < size; i++) out[used + i] = byte_of(5, round, (size_t)at + i);
        used += size, total += (int64_t)size;
      }
      if (whose < all && size > 0 && at + (int64_t)size > end) end = at + (int64_t)size;
      at += (int64_t)size;
    }
    for (size_t i = count; i-- > 1;) { /* in any order */
      const size_t j = (size_t)(self * 7 + round) % (i + 1);
      const delegate_piece kept = mine[i];
      mine[i] = mine[j], mine[j] = kept;
    }
    MUST(delegate_write_all(seat, 0, mine, count) == total);
    for (size_t i = 0; i < count; i++) mine[i].data = in + ((unsigned char*)mine[i].data - out);
    memset(in, 0, sizeof in);
    MUST(delegate_read_all(seat, 0, mine, count) == total);
    MUST(memcmp(in, out, used) == 0);
  }
  const delegate_piece last = {end - (self == 0 ? 1 : 0), in, self == 0 ? 10 : 0};
  MUST(delegate_read_all(seat, 0, &last, 1) == (self == 0 ? 1 : 0));
  MUST(delegate_read_all(seat, 7, &last, 1) == PVAS_ERR_ARGUMENT);
}

/* Reads that overlap, contain each other, are equal or pass the end; writes that must not. */
static void overlaps(void) {
  enum { file_size = 3000 };
  const delegate_piece own = {(int64_t)self * file_size, out, file_size};
  const int64_t end = (int64_t)all * file_size;
  for (size_t i = 0; i < file_size; i++) out[i] = byte_of(5, 0, (size_t)own.offset + i);
  MUST(delegate_write_all(seat, 0, &own, 1) == file_size);
  for (int round = 0; round < rounds; round++) {
    delegate_piece mine[most_pieces];
    int64_t total = 0;
    for (int i = 0; i < most_pieces * all; i++) {
      const size_t size = draw(3000) + 1;
      const int64_t at = draw(3) ? draw((unsigned)end) : 100;
      if (i % all != self) continue;
      mine[i / all] = (delegate_piece){at, in + (size_t)(i / all) * 3000, size};
      total += at + (int64_t)size > end ? end - at : (int64_t)size;
    }
    memset(in, 0, sizeof in);
    MUST(delegate_read_all(seat, 0, mine, most_pieces) == total);
    for (int i = 0; i < most_pieces; i++)
      for (size_t k = 0; k < mine[i].size; k++) {
        const int64_t at = mine[i].offset + (int64_t)k;
        MUST(((unsigned char*)mine[i].data)[k] == (at < end ? byte_of(5, 0, (size_t)at) : 0));
      }
  }
  /* Refused for all, and nothing is written, not in the last view either. */
  static unsigned char wrong[16];
  memset(wrong, 'X', sizeof wrong);
  const delegate_piece over = {8 * index_here, wrong, sizeof wrong};
  MUST(delegate_write_all(seat, 0, &over, 1) == PVAS_ERR_ARGUMENT);
  const delegate_piece beyond = {self == 0 ? INT64_MAX - 8 : 16 * self, wrong, sizeof wrong};
  MUST(delegate_write_all(seat, 0, &beyond, 1) == PVAS_ERR_ARGUMENT);
  const delegate_piece back = {own.offset, in, file_size};
  MUST(delegate_read_all(seat, 0, &back, 1) == file_size);
  MUST(memcmp(in, out, file_size) == 0);
}

/* The first requester of rank 0 is killed outside any wait, while all others wait for it. */
static void be_lost(void) {
  if (self == 0) {
    const delegate_request nothing = {DELEGATE_RECEIVE, {0, 99, 0}, in, 1, DELEGATE_IN};
    uint64_t number;
    MUST(delegate_start(seat, &nothing, &number) == 0);
    usleep(200000);
    raise(SIGKILL);
  }
  MUST(delegate_barrier(seat) == PVAS_ERR_LOST);
  MUST(delegate_barrier(seat) == PVAS_ERR_LOST);
}

int main(int argc, char** argv) {
  char name[20];
  MUST(argc == 8);
  rank = atoi(argv[1]), ranks = atoi(argv[2]), members = atoi(argv[3]), index_here = atoi(argv[4]);
  rounds = atoi(argv[6]), dice_state = (unsigned)atoi(argv[7]);
  self = rank * members + index_here, all = ranks * members;
  snprintf(name, sizeof name, "net %d", rank);
  MUST(delegate_join(name, 20000, NULL, &seat) == 0);
  const char* what = argv[5];
  if (strcmp(what, "messages") == 0) messages();
  if (strcmp(what, "put") == 0) puts_to_memory();
  if (strcmp(what, "collectives") == 0) collectives();
  if (strcmp(what, "files") == 0) files();
  if (strcmp(what, "overlaps") == 0) overlaps();
  if (strcmp(what, "kill") == 0) be_lost();
  if (strcmp(what, "kill") != 0) MUST(delegate_barrier(seat) == 0);
  delegate_leave(seat);
  return 0;
}
