// How drivers copy the pieces of a StripPair: in one call, by rows, or one by one.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/units.h"
#include "pattern/copy.h"

namespace shima {

// The largest distance of rows that the drivers' two-dimensional copies accept.
constexpr std::int64_t max_pitch_bytes = 0x7fffffff;

// Calls piece(to, from, len_bytes) for contiguous copies and rows(pair) for rows at positive
// distances. Stops at the first error.
template <class Piece, class Rows>
[[nodiscard]] Status copy_pieces(const StripPair& pair, Piece piece, Rows rows) {
  const auto len = as_signed(pair.len_bytes);
  const auto is_pitch = [len](std::int64_t stride) {
    return stride >= len && stride <= max_pitch_bytes;
  };
  const auto to = static_cast<std::uintptr_t>(pair.a_offset);
  const auto from = static_cast<std::uintptr_t>(pair.b_offset);
  if (pair.count == 1 || (pair.a_stride_bytes == len && pair.b_stride_bytes == len))
    return piece(to, from, pair.len_bytes * pair.count);
  if (is_pitch(pair.a_stride_bytes) && is_pitch(pair.b_stride_bytes)) return rows(pair);
  for (std::uint64_t i = 0; i < pair.count; ++i)
    SHIMA_TRY(piece(to + i * as_unsigned(pair.a_stride_bytes),
                    from + i * as_unsigned(pair.b_stride_bytes), pair.len_bytes));
  return {};
}

}  // namespace shima
