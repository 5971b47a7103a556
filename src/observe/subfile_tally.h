// Bytes and runs that one open file moved to and from each of its subfiles. The number of runs
// shows how far requests were merged on their way to a target.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shima {

struct SubfileTally {
  std::uint64_t writes = 0;  // runs contiguous in the subfile
  std::uint64_t reads = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_read = 0;

  SubfileTally& operator+=(const SubfileTally& other) {
    writes += other.writes;
    reads += other.reads;
    bytes_written += other.bytes_written;
    bytes_read += other.bytes_read;
    return *this;
  }
};

// One tally per subfile; several threads may count concurrently. Counts nothing before it is
// started.
class SubfileTallies {
 public:
  void start(std::size_t subfile_count) {
    counts_ = std::make_unique<Counts[]>(subfile_count);
    size_ = subfile_count;
  }

  void wrote(std::size_t subfile, std::uint64_t len_bytes, std::uint64_t runs = 1) {
    if (counts_ == nullptr) return;
    counts_[subfile].writes.fetch_add(runs, std::memory_order_relaxed);
    counts_[subfile].bytes_written.fetch_add(len_bytes, std::memory_order_relaxed);
  }

  void read(std::size_t subfile, std::uint64_t len_bytes, std::uint64_t runs = 1) {
    if (counts_ == nullptr) return;
    counts_[subfile].reads.fetch_add(runs, std::memory_order_relaxed);
    counts_[subfile].bytes_read.fetch_add(len_bytes, std::memory_order_relaxed);
  }

  [[nodiscard]] std::vector<SubfileTally> all() const {
    std::vector<SubfileTally> all(size_);
    for (std::size_t i = 0; i < size_; ++i)
      all[i] = {counts_[i].writes, counts_[i].reads, counts_[i].bytes_written,
                counts_[i].bytes_read};
    return all;
  }

 private:
  struct Counts {
    std::atomic<std::uint64_t> writes = 0;
    std::atomic<std::uint64_t> reads = 0;
    std::atomic<std::uint64_t> bytes_written = 0;
    std::atomic<std::uint64_t> bytes_read = 0;
  };

  std::unique_ptr<Counts[]> counts_;
  std::size_t size_ = 0;
};

}  // namespace shima
