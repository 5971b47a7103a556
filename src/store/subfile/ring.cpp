#include "store/subfile/ring.h"

#include <limits.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "base/copy/bounced_call.h"

#ifdef SHIMA_HAVE_URING
#include <liburing.h>
#endif

namespace shima {

#ifdef SHIMA_HAVE_URING
namespace {

constexpr unsigned batch_runs = 256;
constexpr std::uint64_t largest_run_bytes = INT_MAX / 2;

class Ring {
 public:
  Ring() : open_(::io_uring_queue_init(batch_runs, &ring_, 0) == 0) {}
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  // The kernel closes the file of a closed ring later, in the background. Until then the file would
  // still be open for writing: leases would be refused, and locks held.
  ~Ring() {
    if (!open_) return;
    if (has_file_) ::io_uring_unregister_files(&ring_);
    ::io_uring_queue_exit(&ring_);
  }

  // Whether the ring accepts runs of descriptor `fd`.
  [[nodiscard]] bool take_file(int fd) {
    has_file_ = open_ && ::io_uring_register_files(&ring_, &fd, 1) == 0;
    return has_file_;
  }

  // At most batch_runs. Returns when none is pending.
  [[nodiscard]] bool move(std::span<const ApartRun> runs, bool writing) {
    for (const ApartRun& run : runs) prepare(run, writing);
    auto left = static_cast<unsigned>(runs.size());
    unsigned unsent = left;
    bool whole = true;
    while (left > 0) {
      const int sent = ::io_uring_submit_and_wait(&ring_, unsent == 0 ? 1 : left);
      if (sent < 0 && sent != -EINTR) {
        await(left - unsent);
        return false;
      }
      if (sent > 0) unsent -= std::min(unsent, static_cast<unsigned>(sent));
      left -= reap(whole);
    }
    return whole;
  }

 private:
  // Must be called before buffers are released: the kernel may still write to them.
  void await(unsigned under_way) {
    io_uring_cqe* done = nullptr;
    while (under_way > 0) {
      if (::io_uring_wait_cqe(&ring_, &done) != 0) continue;
      ::io_uring_cqe_seen(&ring_, done);
      --under_way;
    }
  }

  void prepare(const ApartRun& run, bool writing) {
    io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);
    const auto count = static_cast<unsigned>(run.pieces.size());
    const auto offset = static_cast<std::uint64_t>(run.begin.value);
    const iovec& first = run.pieces.front();
    const auto len = static_cast<unsigned>(first.iov_len);
    if (count > 1 && writing)
      ::io_uring_prep_writev(entry, 0, run.pieces.data(), count, offset);
    else if (count > 1)
      ::io_uring_prep_readv(entry, 0, run.pieces.data(), count, offset);
    else if (writing)
      ::io_uring_prep_write(entry, 0, first.iov_base, len, offset);
    else
      ::io_uring_prep_read(entry, 0, first.iov_base, len, offset);
    entry->flags |= IOSQE_FIXED_FILE;
    ::io_uring_sqe_set_data64(entry, run.len_bytes);
  }

  unsigned reap(bool& whole) {
    io_uring_cqe* done = nullptr;
    unsigned head = 0;
    unsigned seen = 0;
    io_uring_for_each_cqe(&ring_, head, done) {
      if (done->res < 0 || static_cast<std::uint64_t>(done->res) != done->user_data) whole = false;
      ++seen;
    }
    ::io_uring_cq_advance(&ring_, seen);
    return seen;
  }

  io_uring ring_{};
  bool open_;
  bool has_file_ = false;
};

// Runs whose memory is exchanged for a buffer's where the kernel would copy it slowly, as far as
// the buffer has room: all must be under way at once.
class BouncedRuns {
 public:
  BouncedRuns(Direction direction, bool avoids_slow)
      : direction_(direction),
        avoids_slow_(avoids_slow),
        buffer_(direction, {.avoids_slow = avoids_slow, .capacity_bytes = capacity_bytes}) {}

  // Valid until finish().
  [[nodiscard]] std::span<const ApartRun> exchange(std::span<const ApartRun> runs) {
    if (!avoids_slow_ ||
        std::ranges::none_of(runs, [this](const ApartRun& run) { return is_slow(run); }))
      return runs;
    runs_.clear();
    pieces_.clear();
    pieces_.reserve(pieces_in(runs));  // the runs refer to them
    for (const ApartRun& run : runs) add(run);
    return runs_;
  }
  // All have been moved.
  void finish() { buffer_.finish(UINT64_MAX); }

 private:
  static constexpr std::size_t capacity_bytes =
      std::size_t{batch_runs} * (4096 + BounceBuffer::most_skipped_bytes);

  [[nodiscard]] bool is_slow(const ApartRun& run) const {
    return has_slow_piece(direction_, run.pieces, run.begin.value);
  }
  static std::size_t pieces_in(std::span<const ApartRun> runs) {
    std::size_t sum = 0;
    for (const ApartRun& run : runs) sum += run.pieces.size();
    return sum;
  }
  void add(const ApartRun& run) {
    auto offset = as_unsigned(run.begin.value);
    for (const iovec& piece : run.pieces) {
      pieces_.push_back(buffer_.exchange_whole(piece, offset));
      offset += piece.iov_len;
    }
    runs_.push_back({run.begin, std::span(pieces_).last(run.pieces.size()), run.len_bytes});
  }

  Direction direction_;
  bool avoids_slow_;
  BounceBuffer buffer_;
  std::vector<iovec> pieces_;
  std::vector<ApartRun> runs_;
};

}  // namespace

bool move_through_ring(int fd, std::span<const ApartRun> runs, bool writing, bool avoids_slow) {
  static std::atomic<bool> refused = false;  // a refusal is permanent
  const auto too_large = [](const ApartRun& run) {
    return run.len_bytes > largest_run_bytes || run.pieces.size() > IOV_MAX;
  };
  if (refused || std::ranges::any_of(runs, too_large)) return false;
  Ring ring;
  if (!ring.take_file(fd)) {
    refused = true;
    return false;
  }
  BouncedRuns bounced(writing ? Direction::write : Direction::read, avoids_slow);
  while (!runs.empty()) {
    const auto batch = bounced.exchange(runs.first(std::min<std::size_t>(runs.size(), batch_runs)));
    if (!ring.move(batch, writing)) return false;
    bounced.finish();
    runs = runs.subspan(batch.size());
  }
  return true;
}

#else

bool move_through_ring(int, std::span<const ApartRun>, bool, bool) { return false; }

#endif

}  // namespace shima
