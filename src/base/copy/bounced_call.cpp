#include "base/copy/bounced_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/thread_object.h"

namespace shima {
namespace {

// Gives the pieces to a buffer in portions.
class Portions {
 public:
  Portions(BounceBuffer& buffer, std::span<const iovec> pieces) : buffer_(buffer), rest_(pieces) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  // What is to be moved next, to or from the offset; until the buffer is full.
  std::span<const iovec> next(std::int64_t offset) {
    given_.clear();
    len_bytes_ = 0;
    while (!rest_.empty()) {
      const iovec piece{static_cast<std::byte*>(rest_.front().iov_base) + begun_bytes_,
                        rest_.front().iov_len - begun_bytes_};
      given_.push_back(buffer_.exchange(piece, as_unsigned(offset) + len_bytes_));
      const std::size_t len = given_[given_.size() - 1].iov_len;
      len_bytes_ += len;
      begun_bytes_ += len;
      if (len < piece.iov_len) break;
      rest_ = rest_.subspan(1);
      begun_bytes_ = 0;
    }
    return {given_.data(), given_.size()};
  }
  [[nodiscard]] std::uint64_t len_bytes() const { return len_bytes_; }

 private:
  BounceBuffer& buffer_;
  std::span<const iovec> rest_;
  std::size_t begun_bytes_ = 0;  // of the first of rest_
  static constexpr std::size_t usual_count = 8;
  fmt::basic_memory_buffer<iovec, usual_count> given_;
  std::uint64_t len_bytes_ = 0;
};

struct ThreadMemory {
  ThreadMemory() {}  // leaves the bytes as they are
  std::array<std::byte, BounceBuffer::usual_capacity_bytes> bytes;
};

}  // namespace

std::byte* bounce_memory_of_thread() {
  auto* const memory = thread_object<ThreadMemory>();
  return memory != nullptr ? memory->bytes.data() : nullptr;
}

ssize_t call_bounced(BounceBuffer& buffer, std::span<const iovec> pieces, std::int64_t offset,
                     PositionalCall call) {
  std::uint64_t sum_bytes = 0;
  for (Portions portions(buffer, pieces); !portions.done();) {
    const std::int64_t at = offset + as_signed(sum_bytes);
    const auto given = portions.next(at);
    const ssize_t moved = call(given.data(), static_cast<int>(given.size()), at);
    const std::uint64_t moved_bytes = as_unsigned(std::max<ssize_t>(moved, 0));
    buffer.finish(moved_bytes);
    if (moved < 0 && sum_bytes == 0) return moved;
    sum_bytes += moved_bytes;
    if (moved_bytes < portions.len_bytes()) break;
  }
  return as_signed(sum_bytes);
}

}  // namespace shima
