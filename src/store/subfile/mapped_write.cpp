#include "store/subfile/mapped_write.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "store/subfile/close_runs.h"
#include "store/subfile/close_to_open.h"

namespace shima {

namespace {

// A window begins at a multiple of half its length, so that every shorter run lies within one.
constexpr std::int64_t window_bytes = std::int64_t{64} << 20;

}  // namespace

class MappedWindow {
 public:
  MappedWindow(int fd, TargetOffset first)
      : begin_{first.value / (window_bytes / 2) * (window_bytes / 2)},
        memory_(
            ::mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin_.value)) {
    if (is_mapped()) ::madvise(memory_, window_bytes, MADV_DONTDUMP);
  }
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;
  ~MappedWindow() {
    if (is_mapped()) ::munmap(memory_, window_bytes);
  }

  [[nodiscard]] bool is_mapped() const { return memory_ != MAP_FAILED; }
  [[nodiscard]] bool has(const ApartRun& run) const {
    return run.begin >= begin_ && end_of(run) <= begin_ + window_bytes;
  }
  [[nodiscard]] void* at(TargetOffset offset) const {
    return static_cast<std::byte*>(memory_) + (offset - begin_);
  }

 private:
  TargetOffset begin_;
  void* memory_;
};

namespace {

// Places for one process_vm_readv: mapped ones, and the memory that they are filled from.
class Copy {
 public:
  // False if it must be executed first.
  [[nodiscard]] bool add(void* mapped, const ApartRun& run) {
    if (to_count_ == to_.size() || from_count_ + run.pieces.size() > from_.size()) return false;
    to_[to_count_++] = {mapped, run.len_bytes};
    for (const iovec& piece : run.pieces) add_source(piece);
    len_bytes_ += run.len_bytes;
    return true;
  }
  [[nodiscard]] bool execute() {
    errno = 0;
    const auto wanted = static_cast<ssize_t>(std::exchange(len_bytes_, 0));
    const auto to_count = std::exchange(to_count_, 0);
    const auto from_count = std::exchange(from_count_, 0);
    return wanted == 0 || ::process_vm_readv(::getpid(), to_.data(), to_count, from_.data(),
                                             from_count, 0) == wanted;
  }

 private:
  void add_source(const iovec& piece) {
    if (from_count_ > 0) {
      iovec& last = from_[from_count_ - 1];
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == piece.iov_base) {
        last.iov_len += piece.iov_len;
        return;
      }
    }
    from_[from_count_++] = piece;
  }

  std::array<iovec, IOV_MAX> to_;
  std::array<iovec, IOV_MAX> from_;
  std::size_t to_count_ = 0;
  std::size_t from_count_ = 0;
  std::uint64_t len_bytes_ = 0;
};

bool write_run(int fd, const ApartRun& run) {
  const auto count = static_cast<int>(run.pieces.size());
  return run.pieces.size() <= IOV_MAX && ::pwritev(fd, run.pieces.data(), count, run.begin.value) ==
                                             static_cast<ssize_t>(run.len_bytes);
}

// A mapping can be written up to the end of the file only.
bool reach(int fd, const ApartRun& last) {
  struct stat facts{};
  return ::fstat(fd, &facts) == 0 && (facts.st_size >= end_of(last).value || write_run(fd, last));
}

bool is_regular(int fd) {
  struct stat facts{};
  return ::fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool are_in_order(std::span<const ApartRun> runs) {
  const auto out_of_order = [](const ApartRun& a, const ApartRun& b) {
    return end_of(a) > b.begin;
  };
  return std::ranges::adjacent_find(runs, out_of_order) == runs.end();
}

}  // namespace

MappedWriter::MappedWriter(int flags, std::string path) : flags_(flags), path_(std::move(path)) {}
MappedWriter::~MappedWriter() = default;

int MappedWriter::mappable(int fd) {
  std::call_once(looked_, [&] {
    const int access = flags_ & O_ACCMODE;
    impossible_ = access == O_RDONLY || !is_regular(fd) || !reserves_mapped_pages(fd);
    if (impossible_ || access == O_RDWR) return;
    own_ = UniqueFd(open_anew(fd, O_RDWR, path_).value_or(-1));
    impossible_ = !own_;
  });
  if (impossible_.load(std::memory_order_relaxed)) return -1;
  return own_ ? own_.get() : fd;
}

bool MappedWriter::write(int fd, std::span<const ApartRun> runs) {
  const auto is_long = [](const ApartRun& run) { return run.len_bytes > window_bytes / 2; };
  if (runs.empty() || std::ranges::any_of(runs, is_long) || !are_in_order(runs)) return false;
  const int file = mappable(fd);
  if (file < 0) return false;
  const std::lock_guard alone(writing_);
  const ApartRun& last = runs.back();
  return reach(file, last) && copy_all(file, runs.first(runs.size() - 1)) && write_run(file, last);
}

bool MappedWriter::copy_all(int fd, std::span<const ApartRun> runs) {
  Copy copy;
  const auto execute = [&] {
    if (copy.execute()) return true;
    if (errno == EPERM || errno == ENOSYS) impossible_ = true;  // a container may forbid it
    return false;
  };
  for (const ApartRun& run : runs) {
    if (window_ == nullptr || !window_->has(run))
      if (!execute() || !show(fd, run)) return false;
    void* const place = window_->at(run.begin);
    if (!copy.add(place, run) && (!execute() || !copy.add(place, run))) return false;
  }
  return execute();
}

bool MappedWriter::show(int fd, const ApartRun& run) {
  window_.reset();  // one at a time
  window_ = std::make_unique<MappedWindow>(fd, run.begin);
  if (window_->is_mapped()) return true;
  window_.reset();
  impossible_ = true;
  return false;
}

void MappedWriter::close() {
  const std::lock_guard alone(writing_);
  impossible_ = true;
  window_.reset();
  own_ = {};
}

}  // namespace shima
