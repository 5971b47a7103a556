#include "capi/pff/where.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace shima::capi {
namespace {

constexpr std::int64_t furthest = std::int64_t{1} << 62;
constexpr std::size_t most_levels = 32;

Status in_reach(const char* what, __int128 lowest, __int128 highest) {
  if (lowest >= -furthest && highest <= furthest) return {};
  return fail(Code::bad_argument, fmt::format("{}: offsets reach beyond 2^62", what));
}

Slice whole(Pattern pattern, std::int64_t base) {
  const std::uint64_t len_bytes = pattern.len_bytes();
  return {std::move(pattern), base, 0, len_bytes};
}

Result<Slice> span_of(const pff_where& where) {
  SHIMA_TRY(in_reach("pff_span", where.offset, static_cast<__int128>(where.offset) + where.size));
  return whole(Pattern::contiguous(where.size), where.offset);
}

Result<Slice> stride_of(const pff_where& where) {
  if (where.size == 0) return Slice{};
  if (where.element == 0) return fail(Code::bad_argument, "pff_stride: the element size is 0");
  const std::uint64_t count = where.size / where.element + (where.size % where.element != 0);
  const __int128 last = where.offset + static_cast<__int128>(count - 1) * where.stride;
  SHIMA_TRY(in_reach("pff_stride", std::min<__int128>(where.offset, last),
                     std::max<__int128>(where.offset, last) + where.element));
  SHIMA_TRY(in_reach("pff_stride", 0, static_cast<__int128>(count) * where.element));
  return Slice{Pattern::strided(count, where.stride, Pattern::contiguous(where.element)),
               where.offset, 0, where.size};
}

Result<Slice> nest_of(const pff_where& where) {
  if (where.count > most_levels || (where.count > 0 && where.parts == nullptr))
    return fail(Code::bad_argument, fmt::format("pff_nested: at most {} levels", most_levels));
  const std::span levels(static_cast<const pff_level*>(where.parts), where.count);
  const auto is_empty = [](const pff_level& level) { return level.count == 0; };
  if (where.element == 0 || std::ranges::any_of(levels, is_empty)) return Slice{};
  SHIMA_TRY(in_reach("pff_nested", 0, where.element));
  Pattern pattern = Pattern::contiguous(where.element);
  for (std::size_t i = levels.size(); i-- > 0;) {
    const pff_level& level = levels[i];
    // Each factor is below 2^63, so that no product overflows 128 bits.
    SHIMA_TRY(in_reach("pff_nested", 0, level.count));
    const __int128 last = static_cast<__int128>(level.count - 1) * level.stride;
    SHIMA_TRY(in_reach("pff_nested", std::min<__int128>(0, last) + pattern.lowest() + where.offset,
                       std::max<__int128>(0, last) + pattern.highest() + where.offset));
    SHIMA_TRY(in_reach("pff_nested", 0, static_cast<__int128>(level.count) * pattern.len_bytes()));
    pattern = Pattern::strided(level.count, level.stride, pattern);
  }
  return whole(std::move(pattern), where.offset);
}

Result<Slice> list_of(const pff_where& where) {
  if (where.count > 0 && where.parts == nullptr)
    return fail(Code::bad_argument, "pff_list: the pieces are NULL");
  const std::span pieces(static_cast<const pff_piece*>(where.parts), where.count);
  std::vector<Pattern> children;
  children.reserve(pieces.size());
  Pattern like_last;  // pieces of equal size share their description
  __int128 sum = 0;
  for (const pff_piece& piece : pieces) {
    sum += piece.size;
    SHIMA_TRY(in_reach("pff_list", piece.offset, static_cast<__int128>(piece.offset) + piece.size));
    if (piece.size == 0) continue;
    if (like_last.len_bytes() != piece.size) like_last = Pattern::contiguous(piece.size);
    children.push_back(like_last.shifted(piece.offset));
  }
  SHIMA_TRY(in_reach("pff_list", 0, sum));
  return whole(Pattern::indexed(std::move(children)), 0);
}

}  // namespace

Result<Slice> slice_of(const pff_where& where) {
  switch (where.kind) {
    case 0:
      return span_of(where);
    case 1:
      return stride_of(where);
    case 2:
      return nest_of(where);
    case 3:
      return list_of(where);
    default:
      return fail(Code::bad_argument,
                  "invalid pff_where: create it with pff_span, pff_stride, pff_nested or pff_list");
  }
}

}  // namespace shima::capi
