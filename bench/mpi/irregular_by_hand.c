// irregular_by_hand: what irregular.c does, by a program that exchanges the pieces itself.
//
// Every rank owns an equal part of the file. A write sends each piece to the owner of its place
// (MPI_Alltoallv) and writes the part by one contiguous pwrite; a read reads the part by one
// contiguous pread and sends the pieces back. The first write also tells the owners which pieces
// come; later calls reuse that, as a program with constant pieces does.
//
//     irregular_by_hand FILE PIECES      prints one JSON object (times in ns a piece)

#include "irregular.h"

#include <fcntl.h>
#include <string.h>

// A piece, or its part in one owner's domain; in doubles.
struct place {
  int first;  // from the start of the domain
  int len;
};

// Counts and first elements by rank, as MPI_Alltoallv takes them.
struct shares {
  int *counts, *firsts;
};

struct exchange {
  int ranks;
  long begin, end;       // of this rank's domain, in doubles of the file
  struct shares own;     // doubles of this rank, by owner
  struct shares coming;  // doubles that this rank owns, by their rank
  struct place* places;  // of the pieces that this rank owns
  long place_count;
  double *packed, *domain;
};

static void* allocate(size_t bytes) {
  void* const memory = malloc(bytes);
  if (!memory && bytes) fail("no memory");
  return memory;
}

static struct shares no_shares(int ranks) {
  return (struct shares){calloc((size_t)ranks, sizeof(int)), calloc((size_t)ranks, sizeof(int))};
}

// Sets the first elements; returns the sum.
static long add_up(struct shares* s, int ranks) {
  long sum = 0;
  for (int r = 0; r < ranks; ++r) {
    s->firsts[r] = (int)sum;
    sum += s->counts[r];
  }
  return sum;
}

static long domain_begin(const struct pieces* own, int ranks, int owner) {
  return own->all_bytes / (long)sizeof(double) * owner / ranks;
}

// Cuts this rank's pieces where domains end; counts them and their doubles by owner.
static struct place* cut_pieces(struct exchange* x, const struct pieces* own, struct shares* sent) {
  struct place* const cut = allocate((size_t)(own->count + x->ranks) * sizeof *cut);
  long count = 0;
  int owner = 0;
  for (long i = 0; i < own->count; ++i) {
    long first = own->offsets[i] / (long)sizeof(double), left = own->lens[i];
    while (left > 0) {
      while (first >= domain_begin(own, x->ranks, owner + 1)) ++owner;
      const long room = domain_begin(own, x->ranks, owner + 1) - first;
      const long len = left < room ? left : room;
      cut[count++] = (struct place){(int)(first - domain_begin(own, x->ranks, owner)), (int)len};
      ++sent->counts[owner];
      x->own.counts[owner] += (int)len;
      first += len;
      left -= len;
    }
  }
  return cut;
}

static void tell_owners(struct exchange* x, const struct pieces* own) {
  MPI_Datatype place;
  MPI_Type_contiguous(2, MPI_INT, &place);
  MPI_Type_commit(&place);
  struct shares sent = no_shares(x->ranks), received = no_shares(x->ranks);
  struct place* const cut = cut_pieces(x, own, &sent);
  MPI_Alltoall(sent.counts, 1, MPI_INT, received.counts, 1, MPI_INT, MPI_COMM_WORLD);
  MPI_Alltoall(x->own.counts, 1, MPI_INT, x->coming.counts, 1, MPI_INT, MPI_COMM_WORLD);
  add_up(&sent, x->ranks), add_up(&x->own, x->ranks), add_up(&x->coming, x->ranks);
  x->place_count = add_up(&received, x->ranks);
  x->places = allocate((size_t)x->place_count * sizeof *x->places);
  MPI_Alltoallv(cut, sent.counts, sent.firsts, place, x->places, received.counts, received.firsts,
                place, MPI_COMM_WORLD);
  free(cut), free(sent.counts), free(sent.firsts), free(received.counts), free(received.firsts);
  MPI_Type_free(&place);
  const size_t bytes = (size_t)(x->end - x->begin) * sizeof(double);
  x->packed = allocate(bytes), x->domain = allocate(bytes);
}

// The doubles of the domain, from the order of the ranks to that of the file, or back.
static void copy_pieces(struct exchange* x, bool to_file) {
  double* packed = x->packed;
  for (long i = 0; i < x->place_count; ++i) {
    double* const at = x->domain + x->places[i].first;
    const int len = x->places[i].len;
    for (int k = 0; k < len; ++k) {
      if (to_file)
        at[k] = packed[k];
      else
        packed[k] = at[k];
    }
    packed += len;
  }
}

static void move_domain(struct exchange* x, int fd, bool write) {
  const size_t bytes = (size_t)(x->end - x->begin) * sizeof(double);
  const off_t offset = x->begin * (off_t)sizeof(double);
  const ssize_t n =
      write ? pwrite(fd, x->domain, bytes, offset) : pread(fd, x->domain, bytes, offset);
  if (n != (ssize_t)bytes) fail("a domain was moved in part");
}

static void write_pieces(struct exchange* x, const struct pieces* own, int fd, void* data) {
  if (!x->places) tell_owners(x, own);
  MPI_Alltoallv(data, x->own.counts, x->own.firsts, MPI_DOUBLE, x->packed, x->coming.counts,
                x->coming.firsts, MPI_DOUBLE, MPI_COMM_WORLD);
  copy_pieces(x, true);
  move_domain(x, fd, true);
}

static void read_pieces(struct exchange* x, int fd, void* data) {
  move_domain(x, fd, false);
  copy_pieces(x, false);
  MPI_Alltoallv(x->packed, x->coming.counts, x->coming.firsts, MPI_DOUBLE, data, x->own.counts,
                x->own.firsts, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) fail("usage: irregular_by_hand FILE PIECES");
  const long total = atol(argv[2]);
  const struct pieces own = deal(total, rank, ranks);
  struct exchange x = {.ranks = ranks,
                       .begin = domain_begin(&own, ranks, rank),
                       .end = domain_begin(&own, ranks, rank + 1),
                       .own = no_shares(ranks),
                       .coming = no_shares(ranks)};
  const size_t bytes = (size_t)own.doubles * sizeof(double);
  uint64_t *data = allocate(bytes), *back = calloc(1, bytes);
  fill(&own, data);

  const int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
  if (fd < 0) fail("the file cannot be opened");
  double ns[4];
  long wrong = 0;
  for (int i = 0; i < 4; ++i) {
    double slowest = 0;
    meet();
    const double started = MPI_Wtime();
    if (i < 2)
      write_pieces(&x, &own, fd, data);
    else
      read_pieces(&x, fd, back);
    const double mine = MPI_Wtime() - started;
    meet();  // a rank that waits in MPI_Allreduce takes the core from those that have not ended
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    ns[i] = slowest * 1e9 / (double)total;
    if (i >= 2) wrong += memcmp(data, back, bytes) != 0;
    memset(back, 0, bytes);
  }
  close(fd);
  wrong = sum_over_ranks(wrong);
  if (rank == 0) {
    unlink(argv[1]);
    report_irregular("irregular_by_hand", ns, wrong, "");
  }
  MPI_Finalize();
  return 0;
}
