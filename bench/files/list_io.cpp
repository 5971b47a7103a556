// list_io: the cost of moving many separate pieces of one file, by method.
//
// A piece at every eighth place, from and to contiguous memory: one pwrite (pread) per piece, or
// batches of 128 through io_uring, submitted and awaited together. The data stays in the page
// cache, so that the calls are compared. Prints a JSON object per method.

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr unsigned batch_pieces = 128;
constexpr std::size_t pitch_pieces = 8;

struct Job {
  int fd;
  bool write;
  std::size_t piece_bytes;
  std::size_t pieces;
  char* memory;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

off_t offset_of(const Job& job, std::size_t piece) {
  return static_cast<off_t>(piece * pitch_pieces * job.piece_bytes);
}

void one_call_each(const Job& job) {
  for (std::size_t i = 0; i < job.pieces; ++i) {
    char* at = job.memory + i * job.piece_bytes;
    const ssize_t n = job.write ? pwrite(job.fd, at, job.piece_bytes, offset_of(job, i))
                                : pread(job.fd, at, job.piece_bytes, offset_of(job, i));
    if (n != static_cast<ssize_t>(job.piece_bytes)) fail("pwrite or pread");
  }
}

void submit_batch(const Job& job, io_uring& ring, std::size_t first, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    char* at = job.memory + (first + i) * job.piece_bytes;
    const auto len = static_cast<unsigned>(job.piece_bytes);
    const auto offset = static_cast<__u64>(offset_of(job, first + i));
    if (job.write)
      io_uring_prep_write(entry, job.fd, at, len, offset);
    else
      io_uring_prep_read(entry, job.fd, at, len, offset);
  }
  if (io_uring_submit_and_wait(&ring, count) < 0) fail("io_uring_submit_and_wait");
  io_uring_cqe* done = nullptr;
  unsigned head = 0, seen = 0;
  io_uring_for_each_cqe(&ring, head, done) {
    if (done->res != static_cast<int>(job.piece_bytes)) fail("a piece through io_uring");
    ++seen;
  }
  if (seen != count) fail("io_uring completions");
  io_uring_cq_advance(&ring, seen);
}

void through_ring(const Job& job) {
  io_uring ring;
  if (io_uring_queue_init(batch_pieces, &ring, 0) < 0) fail("io_uring_queue_init");
  for (std::size_t first = 0; first < job.pieces; first += batch_pieces) {
    const std::size_t left = job.pieces - first;
    submit_batch(job, ring, first,
                 left < batch_pieces ? static_cast<unsigned>(left) : batch_pieces);
  }
  io_uring_queue_exit(&ring);
}

void measure(Job job, const char* method, void (*move)(const Job&)) {
  const auto started = std::chrono::steady_clock::now();
  move(job);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - started;
  std::printf(
      "{\"program\":\"list_io\",\"method\":\"%s\",\"op\":\"%s\",\"piece_bytes\":%zu,"
      "\"pieces\":%zu,\"ns_per_piece\":%.1f}\n",
      method, job.write ? "write" : "read", job.piece_bytes, job.pieces,
      took.count() / static_cast<double>(job.pieces));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: list_io PATH PIECE_BYTES PIECES\n", stderr);
    return 2;
  }
  const auto piece_bytes = std::strtoul(argv[2], nullptr, 10);
  const auto pieces = std::strtoul(argv[3], nullptr, 10);
  std::vector<char> memory(piece_bytes * pieces, 'x');
  Job job{open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600), true, piece_bytes, pieces,
          memory.data()};
  if (job.fd < 0) fail(argv[1]);
  one_call_each(job);  // allocates the pages of the file before the clock starts
  for (const bool write : {true, false}) {
    job.write = write;
    measure(job, "one call each", one_call_each);
    measure(job, "io_uring", through_ring);
    measure(job, "one call each", one_call_each);
    measure(job, "io_uring", through_ring);
  }
}
