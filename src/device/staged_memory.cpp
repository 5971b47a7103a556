#include "device/staged_memory.h"

#include <algorithm>
#include <array>

#include "base/page_size.h"
#include "base/units.h"

namespace shima {
namespace {

// Halves of whole pages, so that pieces of an aligned file stay aligned.
std::uint64_t half_of(std::uint64_t buffer_bytes) {
  const std::uint64_t page_bytes = page_size();
  const std::uint64_t wanted = buffer_bytes == 0 ? default_device_buffer_bytes : buffer_bytes;
  return std::max<std::uint64_t>(1, wanted / 2 / page_bytes) * page_bytes;
}

}  // namespace

Result<std::unique_ptr<CopyQueue>> QueuePool::take(const DevicePlace& place,
                                                   std::uint64_t buffer_bytes) {
  {
    const std::lock_guard hold(mutex_);
    const auto fits = [&](const Idle& idle) {
      return idle.place == place && idle.queue->buffer().size() == buffer_bytes;
    };
    const auto found = std::ranges::find_if(idle_, fits);
    if (found != idle_.end()) {
      auto queue = std::move(found->queue);
      idle_.erase(found);
      return queue;
    }
    // The hint has changed.
    std::erase_if(idle_, [&](const Idle& idle) { return idle.place == place; });
  }
  return place.driver->open_queue(place, buffer_bytes);
}

void QueuePool::give_back(const DevicePlace& place, std::unique_ptr<CopyQueue> queue) {
  const std::lock_guard hold(mutex_);
  idle_.push_back({place, std::move(queue)});
}

void QueuePool::clear() {
  const std::lock_guard hold(mutex_);
  idle_.clear();
}

Status start_copy(CopyQueue& queue, DeviceCopy direction, Cursor& device, Cursor host) {
  std::array<StripPair, 64> pairs;
  while (!host.done() && !device.done()) {
    std::size_t count = 0;
    for (; count < pairs.size() && !host.done() && !device.done(); ++count) {
      const StripPair pair = match(device.strip(), host.strip());
      device.advance(pair.len_bytes * pair.count);
      host.advance(pair.len_bytes * pair.count);
      pairs[count] = direction == DeviceCopy::to_device ? pair : swapped(pair);
    }
    SHIMA_TRY(queue.start(std::span(pairs).first(count)));
  }
  return {};
}

Result<std::unique_ptr<StagedMemory>> StagedMemory::begin(QueuePool& pool,
                                                          const DeviceSlice& memory,
                                                          DeviceCopy direction,
                                                          std::uint64_t buffer_bytes) {
  SHIMA_TRY_ASSIGN(auto queue, pool.take(memory.place, 2 * half_of(buffer_bytes)));
  return std::unique_ptr<StagedMemory>(new StagedMemory(pool, memory, direction, std::move(queue)));
}

StagedMemory::StagedMemory(QueuePool& pool, const DeviceSlice& memory, DeviceCopy direction,
                           std::unique_ptr<CopyQueue> queue)
    : pool_(pool),
      place_(memory.place),
      direction_(direction),
      queue_(std::move(queue)),
      device_(memory.slice),
      len_bytes_(memory.slice.len_bytes),
      half_bytes_(queue_->buffer().size() / 2),
      piece_count_((len_bytes_ + half_bytes_ - 1) / half_bytes_) {}

// A queue that has failed is not reused.
StagedMemory::~StagedMemory() {
  if (caught([&] { return finish(); })) pool_.give_back(place_, std::move(queue_));
}

std::uint64_t StagedMemory::pieces_left() const { return piece_count_ - next_piece_; }

Result<Slice> StagedMemory::next() {
  const std::uint64_t piece = next_piece_++;
  if (direction_ == DeviceCopy::from_device) {
    if (piece == 0) SHIMA_TRY(start_copy(piece, piece_len(piece)));
    if (next_piece_ < piece_count_) SHIMA_TRY(start_copy(next_piece_, piece_len(next_piece_)));
  }
  SHIMA_TRY(wait_for(piece));
  const std::uint64_t len = piece_len(piece);
  return Slice{.pattern = Pattern::contiguous(len),
               .base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(half(piece))),
               .len_bytes = len};
}

Status StagedMemory::filled(std::uint64_t len_bytes) {
  const std::uint64_t piece = next_piece_ - 1;
  if (len_bytes < piece_len(piece)) piece_count_ = next_piece_;
  return len_bytes == 0 ? Status{} : start_copy(piece, len_bytes);
}

Status StagedMemory::finish() {
  Status first;
  for (std::uint64_t mark = 0; mark < CopyQueue::mark_count; ++mark) {
    Status status = wait_for(mark);
    if (first) first = std::move(status);
  }
  return first;
}

std::byte* StagedMemory::half(std::uint64_t piece) const {
  return queue_->buffer().data() + piece % CopyQueue::mark_count * half_bytes_;
}

std::uint64_t StagedMemory::piece_len(std::uint64_t piece) const {
  return std::min(half_bytes_, len_bytes_ - piece * half_bytes_);
}

Status StagedMemory::start_copy(std::uint64_t piece, std::uint64_t len_bytes) {
  const auto mark = static_cast<int>(piece % CopyQueue::mark_count);
  const Slice host{.pattern = Pattern::contiguous(len_bytes),
                   .base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(half(piece))),
                   .len_bytes = len_bytes};
  const Status started = shima::start_copy(*queue_, direction_, device_, Cursor(host));
  // Copies that were started before an error are under way too.
  const Status marked = queue_->set_mark(mark);
  under_way_[mark] = marked.has_value();
  return started ? marked : started;
}

Status StagedMemory::wait_for(std::uint64_t piece) {
  const auto mark = static_cast<int>(piece % CopyQueue::mark_count);
  if (!std::exchange(under_way_[mark], false)) return {};
  return queue_->wait_for(mark);
}

}  // namespace shima
