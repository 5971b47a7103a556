// Vectors of the interface as pieces.
#pragma once

#include <lapi.h>

#include "lapi/way/pieces.h"

namespace shima::lapi {

// `Vector` is lapi_vec_t or lapi_lvec_t, which has been checked.
template <class Vector>
[[nodiscard]] Pieces pieces_of(const Vector& vector) {
  std::vector<Piece> pieces(vector.num_vecs);
  const auto info = [&](std::size_t i) { return std::uint64_t(vector.info[i]); };
  const bool is_strided = vector.vec_type == LAPI_GEN_STRIDED_XFER;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = is_strided ? Piece{info(0) + i * info(2), info(1)} : Piece{info(i), vector.len[i]};
  return Pieces(std::move(pieces));
}

}  // namespace shima::lapi
