// preadv and pwritev through a buffer that avoids slow copies (bounce_buffer.h).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "base/copy/bounce_buffer.h"
#include "base/function_ref.h"

namespace shima {

// Whether a piece of a transfer to or from a file at `offset` has a slow distance.
[[nodiscard]] inline bool has_slow_piece(Direction direction, std::span<const iovec> pieces,
                                         std::int64_t offset) {
  auto other = static_cast<std::uintptr_t>(offset);
  for (const iovec& piece : pieces) {
    const auto own = reinterpret_cast<std::uintptr_t>(piece.iov_base);
    if (is_slow_distance(direction, own, other, piece.iov_len)) return true;
    other += piece.iov_len;
  }
  return false;
}

// Memory for one buffer of the calling thread at a time, of BounceBuffer::usual_capacity_bytes;
// null if there is none. It is kept: with the lists, memory for each call took 3 % of a read of 16
// KiB.
[[nodiscard]] std::byte* bounce_memory_of_thread();

using PositionalCall = FunctionRef<ssize_t(const iovec* pieces, int count, std::int64_t offset)>;

// Makes several calls, through `buffer`, which is empty before and afterwards. Returns what one
// call would: after an error, what was moved before it.
[[nodiscard]] ssize_t call_bounced(BounceBuffer& buffer, std::span<const iovec> pieces,
                                   std::int64_t offset, PositionalCall call);

}  // namespace shima
