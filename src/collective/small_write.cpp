#include "collective/small_write.h"

#include <algorithm>
#include <cstring>

#include "collective/plan/chooser.h"
#include "collective/plan/post.h"
#include "pattern/copy.h"
#include "pattern/cursor.h"

namespace shima {
namespace {

// Sorting more pieces costs more than gathering them by windows, which all members fill at once; in
// one space an agent fills its window without a copy by members.
constexpr std::uint64_t most_pieces = 64;
constexpr std::uint64_t most_pieces_in_space = 32;

// Packed: the number of pieces, their places, their bytes.
struct Place {
  std::int64_t offset = 0;
  std::uint64_t len_bytes = 0;
};

template <class T>
void append(const T& value, std::vector<std::byte>& out) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
Result<T> take(std::span<const std::byte>& in) {
  T value;
  if (in.size() < sizeof value)
    return fail(Code::internal, "decoding a member's small write: too short");
  std::memcpy(&value, in.data(), sizeof value);
  in = in.subspan(sizeof value);
  return value;
}

// Calls visit(Place) for each piece.
template <class Visit>
void for_each_piece(const Slice& file, Visit visit) {
  for (Cursor cursor(file); !cursor.done();) {
    const Strip strip = cursor.strip();
    for (std::uint64_t i = 0; i < strip.count; ++i)
      visit(Place{strip.offset + as_signed(i) * strip.stride_bytes, strip.len_bytes});
    cursor.advance(strip.len_bytes * strip.count);
  }
}

}  // namespace

bool is_small_write(const Slice& file, bool one_space) {
  if (file.len_bytes == 0 || !are_few(file.len_bytes, 1) || file.pattern.is_contiguous() ||
      !file.pattern.ordered())
    return false;
  const std::uint64_t pieces = estimate_pieces(file);
  return pieces > 1 && pieces <= (one_space ? most_pieces_in_space : most_pieces);
}

void pack_small_write(const Slice& file, const Slice& memory, std::vector<std::byte>& out) {
  out.clear();
  append(std::uint64_t{0}, out);
  std::uint64_t count = 0;
  for_each_piece(file, [&](const Place& place) {
    append(place, out);
    ++count;
  });
  std::memcpy(out.data(), &count, sizeof count);
  const std::size_t head_bytes = out.size();
  out.resize(head_bytes + file.len_bytes);
  Cursor from(memory);
  Cursor to(Slice{Pattern::contiguous(file.len_bytes), 0, 0, file.len_bytes});
  copy_between(reinterpret_cast<std::uintptr_t>(out.data()) + head_bytes, to, 0, from);
}

Status SmallWrites::add(std::span<const std::byte> packed) {
  if (packed.empty()) return {};
  SHIMA_TRY_ASSIGN(const std::uint64_t count, take<std::uint64_t>(packed));
  if (packed.size() / sizeof(Place) < count)
    return fail(Code::internal, "decoding a member's small write: too many pieces");
  std::span<const std::byte> bytes = packed.subspan(count * sizeof(Place));
  for (std::uint64_t i = 0; i < count; ++i) {
    SHIMA_TRY_ASSIGN(const Place place, take<Place>(packed));
    if (place.len_bytes > bytes.size())
      return fail(Code::internal, "decoding a member's small write: too few bytes");
    pieces_.push_back({place.offset, bytes.first(place.len_bytes)});
    bytes = bytes.subspan(place.len_bytes);
  }
  return {};
}

Status SmallWrites::write(
    FunctionRef<Status(FileOffset offset, std::span<const iovec> pieces)> write) {
  const auto earlier = [](const Piece& a, const Piece& b) { return a.offset < b.offset; };
  if (!std::ranges::is_sorted(pieces_, earlier)) std::ranges::sort(pieces_, earlier);
  for (std::size_t i = 0; i < pieces_.size();) {
    const FileOffset begin{pieces_[i].offset};
    std::int64_t end = begin.value;
    run_.clear();
    for (; i < pieces_.size() && pieces_[i].offset == end; ++i) {
      const auto bytes = pieces_[i].bytes;
      run_.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
      end += as_signed(bytes.size());
    }
    SHIMA_TRY(write(begin, run_));
  }
  return {};
}

}  // namespace shima
