#include "file/hints/common_hints.h"

#include <algorithm>
#include <array>
#include <functional>

namespace shima {
namespace {

using Piece = std::array<char, sizeof(Contribution::Value)>;

// All members but the first bring zeros.
constexpr auto either = [](Piece a, const Piece& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] | b[i]);
  return a;
};

Result<std::string> text_of_first(Channel& channel, std::size_t len_bytes, std::string_view mine) {
  auto text = caught([&]() -> Result<std::string> { return std::string(len_bytes, '\0'); });
  for (std::size_t begin = 0; begin < len_bytes; begin += sizeof(Piece)) {
    Piece piece{};
    if (channel.rank() == 0) mine.copy(piece.data(), piece.size(), begin);
    const auto brought = text ? Result<Piece>(piece) : std::unexpected(text.error());
    SHIMA_TRY_ASSIGN(piece, combine_values<either>(channel, brought));
    std::copy_n(piece.begin(), std::min(piece.size(), len_bytes - begin), text->data() + begin);
  }
  return text;
}

}  // namespace

HintsSummary summary_of(const Channel& channel, std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>{}(text);
  return {{hash, hash}, channel.rank() == 0 ? text.size() : 0};
}

Result<Hints> first_hints(Channel& channel, const HintsSummary& all, std::string_view text) {
  if (all.hashes.equal()) return caught([&] { return decode_hints(text); });
  SHIMA_TRY_ASSIGN(const std::string first, text_of_first(channel, all.first_len_bytes, text));
  return caught([&] { return decode_hints(first); });
}

}  // namespace shima
