// Batched positional I/O on a file descriptor.
//
// The kernel may accept fewer bytes than given (a signal, a full disk, a 2 GiB limit). The loop
// below continues where it stopped; if a second attempt moves nothing, its error is returned.
#include "store/subfile/posix_subfile.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "base/copy/bounced_call.h"
#include "base/log.h"
#include "base/page_size.h"
#include "base/unique_fd.h"
#include "store/subfile/close_to_open.h"
#include "store/subfile/direct_subfile.h"
#include "store/subfile/far_lock.h"
#include "store/subfile/lock_holder.h"
#include "store/subfile/pieces.h"
#include "store/subfile/ring.h"

namespace shima {

ssize_t FileSystemCalls::pwritev(int fd, const iovec* pieces, int count, off_t offset) {
  return count == 1 ? ::pwrite(fd, pieces->iov_base, pieces->iov_len, offset)
                    : ::pwritev(fd, pieces, count, offset);
}
ssize_t FileSystemCalls::preadv(int fd, const iovec* pieces, int count, off_t offset) {
  return count == 1 ? ::pread(fd, pieces->iov_base, pieces->iov_len, offset)
                    : ::preadv(fd, pieces, count, offset);
}
bool FileSystemCalls::move_apart(int fd, std::span<const ApartRun> runs, bool writing,
                                 bool avoids_slow) {
  return move_through_ring(fd, runs, writing, avoids_slow);
}
bool FileSystemCalls::maps_writes(MappedWriter& writer, int fd) { return writer.is_able(fd); }
bool FileSystemCalls::write_mapped(MappedWriter& writer, int fd, std::span<const ApartRun> runs) {
  return writer.write(fd, runs);
}
std::unique_ptr<FileView> FileSystemCalls::view(int fd, TargetRange range) {
  return FileView::of_cached(fd, range);
}
int FileSystemCalls::fsync(int fd) { return ::fsync(fd); }

int FileSystemCalls::lock(int fd, struct flock& range) { return ::fcntl(fd, F_OFD_SETLKW, &range); }
int FileSystemCalls::try_lock(int fd, struct flock& range) {
  return ::fcntl(fd, F_OFD_SETLK, &range);
}

namespace {

int access_flags(const SubfileOpen& request) {
  return request.read && request.write ? O_RDWR : request.write ? O_WRONLY : O_RDONLY;
}

class PosixSubfile final : public Subfile {
 public:
  // `flags`: of open(2), for another descriptor of the file.
  PosixSubfile(int fd, const SubfileOpen& request, std::unique_ptr<FileSystemCalls> calls,
               int flags)
      : fd_(fd),
        path_(request.path),
        flags_(flags),
        calls_(std::move(calls)),
        close_to_open_(request.close_to_open.value_or(is_close_to_open(fd))),
        on_nfs_(close_to_open_ && is_nfs(fd)),
        is_local_(!close_to_open_ && is_local(fd)),
        has_views_(is_local_ && maps_what_is_read(fd)),
        avoids_slow_(request.avoids_slow
                         ? *request.avoids_slow
                         : is_local_ && (flags & O_DIRECT) == 0 && has_slow_distances()),
        portion_bytes_(is_local_ && (flags & O_DIRECT) == 0 ? request.portion_bytes : 0),
        unsynced_(request.create),
        stale_(close_to_open_),
        mapped_(flags, request.path),
        far_lock_(*calls_, flags_, on_nfs_, path_) {}
  PosixSubfile(const PosixSubfile&) = delete;
  PosixSubfile& operator=(const PosixSubfile&) = delete;
  ~PosixSubfile() override {
    if (fd_ >= 0) ::close(fd_);
  }

  Status write(TargetOffset offset, std::span<const iovec> pieces) override {
    SHIMA_TRY_ASSIGN(const auto held, guard());
    SHIMA_TRY(finish_page(offset));
    const bool is_long = portion_bytes_ > 0 && bytes_in(pieces) >= 2 * portion_bytes_;
    const auto moved = is_long ? write_portions(offset, pieces) : move_all(offset, pieces, true);
    note_written();
    if (on_nfs_ && moved) last_end_ = offset + as_signed(*moved);
    return status_of(moved);
  }

  Result<std::uint64_t> read(TargetOffset offset, std::span<const iovec> pieces) override {
    SHIMA_TRY(renew());
    return move_all(offset, pieces, false);
  }

  bool move_apart(std::span<const ApartRun> runs, bool writing) override {
    if (!writing) return renew() && calls_->move_apart(fd_, runs, false, avoids_slow_);
    const auto held = guard();
    if (!held) return false;
    const bool moved = calls_->move_apart(fd_, runs, true, avoids_slow_);
    note_written();
    return moved;
  }

  bool maps_writes() override { return !close_to_open_ && calls_->maps_writes(mapped_, fd_); }
  bool write_mapped(std::span<const ApartRun> runs) override {
    if (close_to_open_) return false;
    const bool written = calls_->write_mapped(mapped_, fd_, runs);
    note_written();
    return written;
  }

  std::unique_ptr<FileView> view(TargetRange range) override {
    return has_views_ ? calls_->view(fd_, range) : nullptr;
  }

  bool cached(TargetOffset offset) override {
    if (stale_) return false;
    std::byte probe{};
    const iovec piece{&probe, 1};
    if (::preadv2(fd_, &piece, 1, offset.value, RWF_NOWAIT) >= 0) return true;
    struct stat facts{};  // a file that may not be read has nothing to read beyond its end
    return errno == EBADF && ::fstat(fd_, &facts) == 0 && offset.value >= facts.st_size;
  }

  bool writes_to_cache() const override { return is_local_; }

  void will_need(TargetRange range) override {
    ::posix_fadvise(fd_, range.begin.value, as_signed(range.len_bytes()), POSIX_FADV_WILLNEED);
  }

  Result<std::uint64_t> size() override {
    SHIMA_TRY(renew());
    struct stat facts{};
    if (::fstat(fd_, &facts) != 0) return failure(errno, "getting the size of");
    return static_cast<std::uint64_t>(facts.st_size);
  }

  Result<std::optional<TargetOffset>> next_data(TargetOffset from) override {
    SHIMA_TRY_ASSIGN(const std::uint64_t end, size());
    if (from.value >= as_signed(end)) return std::nullopt;
    const off_t found = ::lseek(fd_, from.value, SEEK_DATA);
    if (found >= 0) return TargetOffset{found};
    if (errno == ENXIO) return std::nullopt;
    return from;  // the file system does not report holes
  }

  Status truncate(std::uint64_t size_bytes) override {
    const bool well = ::ftruncate(fd_, as_signed(size_bytes)) == 0;
    const int sys_errno = errno;
    note_written();
    if (!well) return failure(sys_errno, "setting the size of");
    return {};
  }

  Status preallocate(std::uint64_t size_bytes) override {
    if (size_bytes == 0) return {};
    SHIMA_TRY(renew());
    SHIMA_TRY_ASSIGN(const auto held, guard());
    int error = EINTR;
    while (error == EINTR) error = ::fallocate(fd_, 0, 0, as_signed(size_bytes)) == 0 ? 0 : errno;
    if (error == EOPNOTSUPP || error == ENOSYS) error = fill_up_to(size_bytes);
    note_written();
    if (error != 0) return failure(error, "preallocating");
    return {};
  }

  // Where the file system cannot preallocate, the C library writes zeros. It does so only behind
  // the end of the file: within it, it would look at a byte and write it, beside what others write.
  [[nodiscard]] int fill_up_to(std::uint64_t size_bytes) const {
    struct stat facts{};
    if (::fstat(fd_, &facts) != 0) return errno;
    const off_t more = static_cast<off_t>(size_bytes) - facts.st_size;
    int error = more <= 0 ? 0 : EINTR;
    while (error == EINTR) error = ::posix_fallocate(fd_, facts.st_size, more);
    return error;
  }

  // A lock of the open file description (fcntl_locking(2)): it ends with the process at the latest.
  Status lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    SHIMA_TRY(prepare_locking());
    struct flock range = range_of(offset, len_bytes);
    range.l_type = exclusive ? F_WRLCK : F_RDLCK;
    while (calls_->lock(locking_fd(), range) != 0) {
      if (errno != EINTR) return failure(errno, "atomic mode needs file locks; locking");
    }
    return {};
  }

  Result<bool> try_lock(TargetOffset offset, std::uint64_t len_bytes, bool exclusive) override {
    SHIMA_TRY(prepare_locking());
    struct flock range = range_of(offset, len_bytes);
    range.l_type = exclusive ? F_WRLCK : F_RDLCK;
    while (calls_->try_lock(locking_fd(), range) != 0) {
      if (errno == EAGAIN || errno == EACCES) return false;
      if (errno != EINTR) return failure(errno, "atomic mode needs file locks; locking");
    }
    return true;
  }

  void unlock(TargetOffset offset, std::uint64_t len_bytes) override {
    struct flock range = range_of(offset, len_bytes);
    range.l_type = F_UNLCK;
    ::fcntl(locking_fd(), F_OFD_SETLK, &range);
  }

  std::string lock_holder(TargetOffset offset, std::uint64_t len_bytes) override {
    struct flock range = range_of(offset, len_bytes);
    range.l_type = F_WRLCK;
    return holder_of_lock(locking_fd(), range);
  }

  Status sync() override {
    unpublished_ = false;
    unsynced_.exchange(false, std::memory_order_acq_rel);
    const Status flushed = flush();
    if (!flushed) unsynced_ = true;
    SHIMA_TRY(flushed);
    release_guard();
    return {};
  }
  bool is_synced() const override { return !close_to_open_ && !unsynced_; }
  void note_changed() override { note_written(); }

  Status publish() override { return unpublished_ ? sync() : Status{}; }
  void look_again() override { stale_ = close_to_open_; }
  bool close_to_open() const override { return close_to_open_; }
  std::uint64_t local_identity() const override { return shima::local_identity(fd_); }
  bool locks_stay_on_node() const override { return shima::locks_stay_on_node(fd_); }

  Status close() override {
    mapped_.close();
    locking_ = {};
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) return failure(errno, "closing");
    return {};
  }

  Result<FileIdentity> identity() override {
    struct stat facts{};
    if (::fstat(fd_, &facts) != 0) return failure(errno, "identifying");
    return FileIdentity{facts.st_dev, facts.st_ino};
  }

  Result<uid_t> owner() override {
    struct stat facts{};
    if (::fstat(fd_, &facts) != 0) return failure(errno, "asking the owner of");
    return facts.st_uid;
  }

 private:
  Status prepare_locking() {
    if (!close_to_open_ || on_nfs_ || locking_) return {};
    SHIMA_TRY_ASSIGN(const int fd, open_anew(fd_, flags_, path_));
    locking_ = UniqueFd(fd);
    return {};
  }

  [[nodiscard]] int locking_fd() const { return locking_ ? locking_.get() : fd_; }

  static struct flock range_of(TargetOffset offset, std::uint64_t len_bytes) {
    struct flock range{};
    range.l_whence = SEEK_SET;
    range.l_start = offset.value;
    range.l_len = as_signed(len_bytes);
    return range;
  }

  [[nodiscard]] std::unexpected<Error> failure(int sys_errno, const char* doing) const {
    return fail_errno(sys_errno, fmt::format("{} {}", doing, path_));
  }

  // To be called after a change, so that a sync meanwhile does not count for it. A sequentially
  // consistent store costs as much as the rest of a small write's bookkeeping.
  void note_written() {
    unsynced_.store(true, std::memory_order_release);
    if (close_to_open_) unpublished_ = true;
  }

  Status flush() {
    if (calls_->fsync(fd_) != 0) return failure(errno, "syncing");
    return {};
  }

  Status renew() {
    if (!stale_) return {};
    const std::unique_lock no_write(guarding_);
    if (!stale_) return {};
    // What the old descriptor reports at its end would be lost.
    if (!on_nfs_ && unpublished_.exchange(false)) SHIMA_TRY(flush());
    SHIMA_TRY(on_nfs_ ? forget() : open_again());
    stale_ = false;
    if (!unpublished_) far_lock_.release(fd_);
    return {};
  }

  Status forget() {
    SHIMA_TRY(far_lock_.take_again(fd_));
    // A client that holds a delegation of the file keeps its pages, also outdated ones.
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    return {};
  }

  Status open_again() {
    SHIMA_TRY_ASSIGN(const int fresh, open_anew(fd_, flags_, path_));
    const Status locked = far_lock_.take(fresh);
    if (!locked) ::close(fresh);
    SHIMA_TRY(locked);
    return replace_descriptor(fd_, fresh, path_);
  }

  // The NFS client keeps one run of written bytes per page. Before it accepts another run it sends
  // the first, which costs a commit as well; a sync writes a single run stably, without a commit.
  Status finish_page(TargetOffset next) {
    const auto page_bytes = static_cast<std::int64_t>(page_size());
    const TargetOffset last = last_end_;
    const bool same_page =
        last.value > 0 && (last.value - 1) / page_bytes == next.value / page_bytes;
    return on_nfs_ && unpublished_ && same_page && next != last ? flush() : Status{};
  }

  // While the result lives, a write sends only its own bytes to other nodes.
  Result<std::shared_lock<std::shared_mutex>> guard() {
    while (close_to_open_) {
      std::shared_lock writing(guarding_);
      if (far_lock_.held()) return writing;
      writing.unlock();
      const std::unique_lock alone(guarding_);
      if (!far_lock_.held()) SHIMA_TRY(far_lock_.take(fd_));
    }
    return std::shared_lock<std::shared_mutex>();
  }

  // Does nothing while bytes wait to be sent. The early release avoids locks that the server lost,
  // or that other processes wait for.
  void release_guard() {
    if (!far_lock_.held()) return;
    const std::unique_lock no_write(guarding_);
    if (!unpublished_) far_lock_.release(fd_);
  }

  // What the next call writes at this place, of so many bytes; there are portions.
  [[nodiscard]] std::uint64_t call_bytes(TargetOffset at, std::uint64_t left_bytes) const {
    if (left_bytes < 2 * portion_bytes_) return left_bytes;
    return portion_bytes_ - (as_unsigned(at.value) & (portion_bytes_ - 1));
  }

  Result<std::uint64_t> write_portions(TargetOffset offset, std::span<const iovec> pieces) {
    const std::uint64_t wanted = bytes_in(pieces);
    PieceCursor cursor(pieces);
    std::uint64_t moved = 0;
    while (moved < wanted) {
      const TargetOffset at = offset + as_signed(moved);
      const std::vector<iovec> portion = cursor.take(call_bytes(at, wanted - moved));
      SHIMA_TRY_ASSIGN(const std::uint64_t done, move_all(at, portion, true));
      moved += done;
    }
    return moved;
  }

  // This function and the next are part of their callers: after a system call, the return of each
  // function that was active costs a mispredicted branch.
  [[gnu::always_inline]] Result<std::uint64_t> move_all(TargetOffset offset,
                                                        std::span<const iovec> pieces,
                                                        bool writing) {
    std::uint64_t moved = 0;
    while (!pieces.empty()) {
      const auto batch = pieces.first(std::min<std::size_t>(pieces.size(), IOV_MAX));
      pieces = pieces.subspan(batch.size());
      const std::uint64_t wanted = bytes_in(batch);
      const auto done = move_batch(offset + as_signed(moved), batch, wanted, writing);
      if (!done) return done;
      moved += *done;
      if (*done < wanted) break;
    }
    return moved;
  }

  [[gnu::always_inline]] Result<std::uint64_t> move_batch(TargetOffset offset,
                                                          std::span<const iovec> batch,
                                                          std::uint64_t wanted, bool writing) {
    std::uint64_t moved = 0;
    std::vector<iovec> rest;
    while (moved < wanted) {
      const ssize_t n = call_once(offset + as_signed(moved), batch, writing);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io_failure(errno, offset + as_signed(moved), wanted - moved, writing);
      if (n == 0 && writing)
        return io_failure(EIO, offset + as_signed(moved), wanted - moved, writing);
      if (n == 0) break;
      moved += static_cast<std::uint64_t>(n);
      if (moved < wanted) {
        PieceCursor cursor(batch);
        cursor.skip(static_cast<std::uint64_t>(n));
        std::vector<iovec> left = cursor.take(wanted - moved);
        rest.swap(left);
        batch = rest;
      }
    }
    return moved;
  }

  [[gnu::always_inline]] ssize_t call_once(TargetOffset offset, std::span<const iovec> batch,
                                           bool writing) {
    const Direction direction = writing ? Direction::write : Direction::read;
    if (avoids_slow_ && has_slow_piece(direction, batch, offset.value)) [[unlikely]]
      return call_for_slow(offset, batch, direction);
    return call(batch.data(), static_cast<int>(batch.size()), offset.value, writing);
  }

  // A write or portion stays one call: of writes to the same bytes, one wins. So does a read from
  // the disk: the kernel reads ahead as far as a call asks.
  [[gnu::noinline]] ssize_t call_for_slow(TargetOffset offset, std::span<const iovec> batch,
                                          Direction direction) {
    const std::size_t wanted = bytes_in(batch) + batch.size() * BounceBuffer::most_skipped_bytes;
    const bool in_one = wanted <= BounceBuffer::usual_capacity_bytes;
    const bool writing = direction == Direction::write;
    if (!in_one && (writing || !cached(offset)))
      return call(batch.data(), static_cast<int>(batch.size()), offset.value, writing);
    BounceBuffer buffer(direction,
                        {.avoids_slow = true,
                         .capacity_bytes = std::min(wanted, BounceBuffer::usual_capacity_bytes),
                         .memory = bounce_memory_of_thread()});
    return call_bounced(buffer, batch, offset.value, [&](const iovec* pieces, int count, off_t at) {
      return call(pieces, count, at, writing);
    });
  }

  [[gnu::always_inline]] ssize_t call(const iovec* pieces, int count, off_t offset, bool writing) {
    return writing ? calls_->pwritev(fd_, pieces, count, offset)
                   : calls_->preadv(fd_, pieces, count, offset);
  }

  [[nodiscard]] std::unexpected<Error> io_failure(int sys_errno, TargetOffset offset,
                                                  std::uint64_t len_bytes, bool writing) const {
    return fail_errno(sys_errno,
                      fmt::format("{} {} bytes at {} of {}", writing ? "writing" : "reading",
                                  len_bytes, offset.value, path_));
  }

  int fd_;
  std::string path_;
  int flags_;
  UniqueFd locking_;  // has the locks of atomic mode where fd_ is replaced to look again
  std::unique_ptr<FileSystemCalls> calls_;
  bool close_to_open_;
  bool on_nfs_;
  bool is_local_;
  bool has_views_;
  // Not where the processor does not copy, or each call may cost a round trip.
  bool avoids_slow_;
  std::uint64_t portion_bytes_;  // 0: write calls may have any length
  std::atomic<bool> unpublished_ = false;
  std::atomic<bool> unsynced_;
  std::atomic<TargetOffset> last_end_ = TargetOffset{0};  // of the last write
  std::atomic<bool> stale_;  // the descriptor must be renewed before a read
  MappedWriter mapped_;
  FarLock far_lock_;
  std::shared_mutex guarding_;  // shared: writes; exclusive: changes of lock and descriptor
};

int open_flags(const SubfileOpen& request) {
  int flags = O_CLOEXEC | access_flags(request);
  if (request.create) flags |= O_CREAT;
  if (request.exclusive) flags |= O_EXCL;
  if (!request.follow_links) flags |= O_NOFOLLOW;
  return flags;
}

Result<UniqueFd> open_file(const SubfileOpen& request, int flags) {
  const char* const path = request.path.c_str();
  const char* const name = path + request.path.rfind('/') + 1;
  UniqueFd fd;
  do {
    fd = UniqueFd(request.directory_fd < 0
                      ? ::open(path, flags, request.permissions)
                      : ::openat(request.directory_fd, name, flags, request.permissions));
  } while (!fd && errno == EINTR);
  if (!fd) return fail_errno(errno, fmt::format("opening {}", request.path));
  struct stat facts{};
  if (::fstat(fd.get(), &facts) == 0 && S_ISDIR(facts.st_mode))
    return fail_errno(EISDIR, fmt::format("opening {}", request.path));
  return fd;
}

std::unique_ptr<Subfile> subfile_of(UniqueFd fd, const SubfileOpen& request,
                                    std::unique_ptr<FileSystemCalls> calls, int more_flags) {
  return std::make_unique<PosixSubfile>(fd.release(), request, std::move(calls),
                                        access_flags(request) | more_flags);
}

Result<std::unique_ptr<FileSystemCalls>> calls_with_faults() {
  const char* fault = std::getenv("SHIMA_FAULT");
  if (fault == nullptr || *fault == '\0') return std::make_unique<FileSystemCalls>();
  return make_faulty_calls(fault);
}

}  // namespace

Result<std::unique_ptr<Subfile>> open_posix_subfile(const SubfileOpen& request,
                                                    std::unique_ptr<FileSystemCalls> calls,
                                                    int more_flags) {
  SHIMA_TRY_ASSIGN(UniqueFd fd, open_file(request, open_flags(request) | more_flags));
  return subfile_of(std::move(fd), request, std::move(calls), more_flags);
}

Status Subfile::write(TargetOffset offset, const void* data, std::uint64_t len_bytes) {
  const iovec piece{const_cast<void*>(data), len_bytes};
  return write(offset, std::span<const iovec>(&piece, 1));
}

Result<std::uint64_t> Subfile::read(TargetOffset offset, void* data, std::uint64_t len_bytes) {
  const iovec piece{data, len_bytes};
  return read(offset, std::span<const iovec>(&piece, 1));
}

// The second descriptor is opened through the first: another file may have taken the name.
Result<std::unique_ptr<Subfile>> open_subfile(const SubfileOpen& request) {
  const DirectTransfers transfers{request.direct_read && request.read,
                                  request.direct_write && request.write};
  SHIMA_TRY_ASSIGN(auto calls, calls_with_faults());
  SHIMA_TRY_ASSIGN(UniqueFd fd, open_file(request, open_flags(request)));
  const int file = fd.get();  // open as long as `buffered`
  auto buffered = subfile_of(std::move(fd), request, std::move(calls), 0);
  if (!transfers.read && !transfers.write) return buffered;
  const auto direct = open_anew(file, access_flags(request) | O_DIRECT, request.path);
  if (!direct) {
    log(LogLevel::warn, "direct_read and direct_write have no effect: {}", direct.error().what);
    return buffered;
  }
  UniqueFd second(*direct);
  SHIMA_TRY_ASSIGN(auto more_calls, calls_with_faults());
  return make_direct_subfile(
      std::move(buffered), subfile_of(std::move(second), request, std::move(more_calls), O_DIRECT),
      transfers, direct_alignment(file));
}

}  // namespace shima
