// A member's small independent writes, kept until all members can write theirs together.
//
// If nodes cache separately, small writes of several nodes to the same pages cost a request to the
// server each. A program may rely on them only after MPI_File_sync or close, which all members
// call. Until then the bytes are kept here: a map from file offsets to a buffer, in which a later
// write replaces an earlier one. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "file/file.h"
#include "pattern/pattern.h"

namespace shima {

class PendingWrites {
 public:
  // All pending writes, in file order. The transfer refers to `data`.
  struct Batch {
    std::vector<std::byte> data;
    Transfer transfer;
  };

  // Whether the pieces of a write are so small that writing them together with others pays off.
  [[nodiscard]] static bool worth_keeping(const Slice& file);

  // Copies the data of a write; false, and nothing is kept, if the buffer is full. If memory
  // runs out, bytes outside the write are unchanged, and those of the write are old or new ones.
  [[nodiscard]] bool keep(const Transfer& transfer);
  [[nodiscard]] Batch take();

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  // One past the last pending byte; 0 if there is none.
  [[nodiscard]] std::int64_t end() const;
  // Whether a pending byte may be between the bounds.
  [[nodiscard]] bool touches(const Bounds& bounds) const;

 private:
  struct Run {
    std::uint64_t len_bytes;
    std::uint64_t place;  // offset in data_
  };

  using Runs = std::map<std::int64_t, Run>;

  void make_room(std::uint64_t len_bytes);
  void add(std::int64_t offset, const std::byte* from, std::uint64_t len_bytes);
  [[nodiscard]] Run* run_that_ends_at(std::int64_t offset, std::uint64_t place);
  void cut_out(std::int64_t begin, std::int64_t end);

  Runs runs_;                    // by offset; they do not overlap
  std::vector<std::byte> data_;  // in the order of the calls
};

}  // namespace shima
