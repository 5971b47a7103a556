#include "file/pending_writes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "collective/plan/post.h"
#include "pattern/copy.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t most_runs = 256 * 1024;  // limit: their descriptions are sent to the agents
constexpr std::uint64_t large_piece_bytes = 256 * 1024;

}  // namespace

bool PendingWrites::worth_keeping(const Slice& file) {
  return file.len_bytes > 0 && file.len_bytes / estimate_pieces(file) < large_piece_bytes;
}

bool PendingWrites::keep(const Transfer& transfer) {
  const Slice& file = transfer.file;
  if (data_.size() + file.len_bytes > most_bytes ||
      runs_.size() + estimate_pieces(file) > most_runs)
    return false;
  make_room(file.len_bytes);
  Cursor in_file(file);
  Cursor in_memory(transfer.memory);
  while (!in_file.done()) {
    const StripPair pair = match(in_file.strip(), in_memory.strip());
    for (std::uint64_t i = 0; i < pair.count; ++i)
      add(pair.a_offset + as_signed(i) * pair.a_stride_bytes,
          reinterpret_cast<const std::byte*>(pair.b_offset + as_signed(i) * pair.b_stride_bytes),
          pair.len_bytes);
    in_file.advance(pair.len_bytes * pair.count);
    in_memory.advance(pair.len_bytes * pair.count);
  }
  return true;
}

void PendingWrites::make_room(std::uint64_t len_bytes) {
  const std::uint64_t needed = data_.size() + len_bytes;
  if (needed > data_.capacity())
    data_.reserve(std::min<std::uint64_t>(std::max(needed, 2 * data_.capacity()), most_bytes));
}

// The steps that may run out of memory precede every change of a run.
void PendingWrites::add(std::int64_t offset, const std::byte* from, std::uint64_t len_bytes) {
  const std::uint64_t place = data_.size();
  Run* const longer = run_that_ends_at(offset, place);
  Runs made;
  if (longer == nullptr) made.emplace(offset, Run{len_bytes, place});
  cut_out(offset, offset + as_signed(len_bytes));
  data_.insert(data_.end(), from, from + len_bytes);
  if (longer != nullptr)
    longer->len_bytes += len_bytes;
  else
    runs_.insert(made.extract(made.begin()));
}

// The run that ends in the file at `offset` and in data_ at `place`; null if there is none.
PendingWrites::Run* PendingWrites::run_that_ends_at(std::int64_t offset, std::uint64_t place) {
  const auto next = runs_.lower_bound(offset);
  if (next == runs_.begin()) return nullptr;
  auto& [begin, run] = *std::prev(next);
  const bool ends_there =
      begin + as_signed(run.len_bytes) == offset && run.place + run.len_bytes == place;
  return ends_there ? &run : nullptr;
}

// Removes the pending bytes of [begin, end). If memory runs out, nothing is removed.
void PendingWrites::cut_out(std::int64_t begin, std::int64_t end) {
  const auto rest_of = [end](std::int64_t offset, const Run& run) {
    const std::uint64_t cut = as_unsigned(end - offset);
    return Run{run.len_bytes - cut, run.place + cut};
  };
  auto at = runs_.lower_bound(begin);
  if (at != runs_.begin()) {
    auto& [offset, run] = *std::prev(at);
    const std::int64_t run_end = offset + as_signed(run.len_bytes);
    if (run_end > end) runs_.emplace_hint(at, end, rest_of(offset, run));
    if (run_end > begin) run.len_bytes = as_unsigned(begin - offset);
  }
  while (at != runs_.end() && at->first < end) {
    auto node = runs_.extract(at++);
    if (node.key() + as_signed(node.mapped().len_bytes) <= end) continue;
    node.mapped() = rest_of(node.key(), node.mapped());
    node.key() = end;
    runs_.insert(at, std::move(node));
  }
}

PendingWrites::Batch PendingWrites::take() {
  Batch batch;
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> lens;
  batch.data.reserve(data_.size());
  for (const auto& [offset, run] : runs_) {
    const auto from = data_.begin() + as_signed(run.place);
    batch.data.insert(batch.data.end(), from, from + as_signed(run.len_bytes));
    if (!offsets.empty() && offsets.back() + as_signed(lens.back()) == offset) {
      lens.back() += run.len_bytes;
    } else {
      offsets.push_back(offset);
      lens.push_back(run.len_bytes);
    }
  }
  const std::uint64_t len_bytes = batch.data.size();
  batch.transfer.file = {Pattern::list(offsets, lens), 0, 0, len_bytes};
  batch.transfer.memory = {Pattern::contiguous(len_bytes),
                           reinterpret_cast<std::intptr_t>(batch.data.data()), 0, len_bytes};
  runs_.clear();
  data_ = {};
  return batch;
}

std::int64_t PendingWrites::end() const {
  if (runs_.empty()) return 0;
  const auto& [offset, run] = *runs_.rbegin();
  return offset + as_signed(run.len_bytes);
}

bool PendingWrites::touches(const Bounds& bounds) const {
  const auto at = runs_.upper_bound(bounds.lowest);
  if (at != runs_.end() && at->first < bounds.highest) return true;
  if (at == runs_.begin()) return false;
  const auto& [offset, run] = *std::prev(at);
  return offset + as_signed(run.len_bytes) > bounds.lowest;
}

}  // namespace shima
