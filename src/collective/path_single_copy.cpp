// Members that share one address space: the agents' system calls read and write the members'
// buffers directly, without a window in between.
//
// In each window an agent lists the members' pieces, sorts them by their offset in the subfile, and
// passes the kernel one list of memory for each run. Bytes in two pieces (ranks that read the same
// bytes, or write them) cannot occur twice in a list; such pieces wait for another round.
#include <algorithm>

#include "base/clock.h"
#include "base/fault_point.h"
#include "collective/window/path_context.h"
#include "collective/window/walk.h"
#include "collective/window/window_io.h"

namespace shima {
namespace {

struct Piece {
  TargetOffset begin;
  std::uint64_t len_bytes = 0;
  std::uintptr_t address = 0;

  [[nodiscard]] TargetOffset end() const { return begin + as_signed(len_bytes); }
};

// Consecutive bytes of a subfile, and the memory that holds them.
struct MemoryRun {
  TargetOffset begin;
  TargetOffset end;
  std::vector<iovec> memory;

  static std::uintptr_t after(const iovec& piece) {
    return reinterpret_cast<std::uintptr_t>(piece.iov_base) + piece.iov_len;
  }
  void add(std::uintptr_t address, std::uint64_t len_bytes) {
    end = end + as_signed(len_bytes);
    if (!memory.empty() && after(memory.back()) == address) {
      memory.back().iov_len += len_bytes;
    } else {
      memory.push_back({reinterpret_cast<void*>(address), len_bytes});
    }
  }
};

class SingleCopier {
 public:
  explicit SingleCopier(PathContext& context) : context_(context) {}

  Status move(const Window& window, DomainWalk& walk) {
    ++context_.counters.windows;
    subfile_ = window.subfile;
    list_pieces(walk.members_in(window), window.range.end);
    while (!pieces_.empty()) SHIMA_TRY(move_round());
    if (end_of_file_ != no_end_of_file) walk.stop_at(end_of_file_);
    return {};
  }
  [[nodiscard]] FileOffset end_of_file() const { return end_of_file_; }

 private:
  // Each member's pieces are in order, so merging them is sufficient.
  void list_pieces(std::span<MemberWalk* const> members, TargetOffset end) {
    const ScopedTimer timer(context_.counters.gather_ns);
    pieces_.clear();
    bounds_.assign(1, 0);
    for (MemberWalk* member : members) {
      fault_point(FaultPhase::gather);
      std::ignore = member->walk_below(end, [this](const StripPair& pair) {
        add_strips(pair);
        return Status{};
      });
      bounds_.push_back(pieces_.size());
    }
    merge(0, bounds_.size() - 1);
  }

  void add_strips(const StripPair& pair) {
    TargetOffset begin{pair.a_offset};
    auto address = static_cast<std::uintptr_t>(pair.b_offset);
    for (std::uint64_t i = 0; i < pair.count; ++i) {
      pieces_.push_back({begin, pair.len_bytes, address});
      begin = begin + pair.a_stride_bytes;
      address += static_cast<std::uintptr_t>(pair.b_stride_bytes);
    }
  }

  // Merges the lists `first` to `last`, whose bounds are in bounds_.
  void merge(std::size_t first, std::size_t last) {
    if (last - first < 2) return;
    const std::size_t middle = first + (last - first) / 2;
    merge(first, middle);
    merge(middle, last);
    const auto at = [this](std::size_t list) {
      return pieces_.begin() + static_cast<std::ptrdiff_t>(bounds_[list]);
    };
    std::ranges::inplace_merge(at(first), at(middle), at(last), {}, &Piece::begin);
  }

  // Moves the pieces in runs; those that overlap an earlier piece remain for the next round.
  Status move_round() {
    waiting_.clear();
    MemoryRun run;
    for (const Piece& piece : pieces_) {
      if (!run.memory.empty() && piece.begin < run.end) {
        waiting_.push_back(piece);
        continue;
      }
      if (!run.memory.empty() && !bridge(run, piece.begin)) SHIMA_TRY(move_run(run));
      if (run.memory.empty()) run.begin = run.end = piece.begin;
      run.add(piece.address, piece.len_bytes);
    }
    SHIMA_TRY(move_run(run));
    pieces_.swap(waiting_);
    return {};
  }

  // Whether a run reaches `next`, over a small gap if it is read.
  bool bridge(MemoryRun& run, TargetOffset next) {
    const auto gap = static_cast<std::uint64_t>(next - run.end);
    if (gap == 0) return true;
    if (context_.direction == Direction::write || gap >= sieve_gap_bytes) return false;
    gap_.resize(sieve_gap_bytes);
    run.add(reinterpret_cast<std::uintptr_t>(gap_.data()), gap);
    return true;
  }

  Status move_run(MemoryRun& run) {
    if (run.memory.empty()) return {};
    const ScopedTimer timer(context_.counters.disk_ns);
    fault_point(FaultPhase::disk);
    ++context_.counters.runs;
    const auto moved = context_.direction == Direction::write ? write(run) : read(run);
    run.memory.clear();
    return moved;
  }

  Status write(const MemoryRun& run) {
    context_.counters.disk_bytes_written += static_cast<std::uint64_t>(run.end - run.begin);
    return context_.file.write_in(subfile_, run.begin, run.memory);
  }

  Status read(const MemoryRun& run) {
    SHIMA_TRY_ASSIGN(const std::uint64_t n, context_.file.read_in(subfile_, run.begin, run.memory));
    context_.counters.disk_bytes_read += n;
    const TargetOffset end = run.begin + as_signed(n);
    if (end == run.end) return {};
    SHIMA_TRY_ASSIGN(const FileOffset found, context_.file.end_seen_at(subfile_, end));
    end_of_file_ = std::min(end_of_file_, found);
    return {};
  }

  PathContext& context_;
  int subfile_ = 0;
  FileOffset end_of_file_ = no_end_of_file;
  std::vector<Piece> pieces_;
  std::vector<Piece> waiting_;
  std::vector<std::size_t> bounds_;  // begin of each member's pieces, and the end of the last
  std::vector<std::byte> gap_;       // destination of bytes in gaps
};

}  // namespace

Result<FileOffset> run_single_copy(PathContext& context) {
  ++context.counters.path_single_copy;
  std::vector<Domain> domains = context.my_domains();
  if (domains.empty()) return no_end_of_file;
  SingleCopier copier(context);
  DomainWalk walk(context.near, context.file.layout(), context.plan.window_bytes,
                  std::move(domains));
  while (const auto window = walk.next_window()) {
    context.channel.staging().count(window->range.len_bytes());
    SHIMA_TRY(copier.move(*window, walk));
  }
  return copier.end_of_file();
}

}  // namespace shima
