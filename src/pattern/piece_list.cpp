#include "pattern/piece_list.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/units.h"

namespace shima {
namespace {

constexpr std::int64_t max_offset = std::int64_t{1} << 62;

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - as_unsigned(value) : as_unsigned(value);
}

// Tells whether a number divides others without dividing: the odd part by its inverse modulo 2^64
// (a multiple of it becomes at most 2^64 / odd), the rest by a mask.
class Divisor {
 public:
  explicit Divisor(std::uint64_t number)
      : number_(number),
        shift_(static_cast<unsigned>(std::countr_zero(number))),
        odd_(number >> shift_),
        inverse_(odd_),
        most_(std::numeric_limits<std::uint64_t>::max() / odd_) {
    for (int i = 0; i < 5; ++i)
      inverse_ *= 2 - odd_ * inverse_;  // each step doubles the right bits
  }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool divides(std::uint64_t value) const {
    return (value & ((std::uint64_t{1} << shift_) - 1)) == 0 &&
           (value >> shift_) * inverse_ <= most_;
  }

 private:
  std::uint64_t number_;
  unsigned shift_;
  std::uint64_t odd_;
  std::uint64_t inverse_;
  std::uint64_t most_;
};

unsigned width_of(std::uint64_t most) {
  if (most <= std::numeric_limits<std::uint8_t>::max()) return 1;
  if (most <= std::numeric_limits<std::uint16_t>::max()) return 2;
  return most <= std::numeric_limits<std::uint32_t>::max() ? 4 : 8;
}

bool is_near(std::int64_t offset, std::int64_t base) {
  const std::int64_t distance = offset - base;
  return distance >= std::numeric_limits<std::int32_t>::min() &&
         distance <= std::numeric_limits<std::int32_t>::max();
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void store_number(std::byte* at, std::uint64_t value, unsigned width) {
  std::memcpy(at, &value, width);  // little-endian: the low bytes come first
}
static_assert(std::endian::native == std::endian::little);

// The last block for which `holds`, which it does for the first blocks only; 0 if for none.
template <class Holds>
std::uint64_t last_block(std::uint64_t block_count, Holds holds) {
  std::uint64_t low = 0;
  std::uint64_t high = block_count;
  while (high - low > 1) {
    const std::uint64_t middle = std::midpoint(low, high);
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

std::uint64_t padded(std::uint64_t len_bytes) { return (len_bytes + 7) / 8 * 8; }

}  // namespace

bool PieceList::place_arrays(const std::byte* image, std::uint64_t available) {
  if (available < header_bytes) return false;
  count_ = load<std::uint64_t>(image);
  const auto widths = load<std::uint64_t>(image + 8);
  equal_len_bytes_ = load<std::uint64_t>(image + 16);
  len_width_ = static_cast<unsigned>(widths >> 8);
  is_narrow_ = (widths & 0xff) == 4;
  const bool known = (is_narrow_ || (widths & 0xff) == 8) &&
                     (widths >> 8 == 0 || (std::has_single_bit(widths >> 8) && widths >> 8 <= 8));
  if (!known || count_ == 0 || count_ > available) return false;  // a piece takes a byte at least
  const std::uint64_t blocks_bytes = block_count() * 16;
  const std::uint64_t offsets_bytes = count_ * (is_narrow_ ? 4 : 8);
  const std::uint64_t size =
      header_bytes + blocks_bytes + padded(offsets_bytes + count_ * len_width_);
  if (size > available) return false;
  image_ = {image, size};
  blocks_ = image + header_bytes;
  offsets_ = blocks_ + blocks_bytes;
  lens_ = offsets_ + offsets_bytes;
  return true;
}

PieceList PieceList::make(std::span<const std::int64_t> offsets,
                          std::span<const std::uint64_t> lens_bytes) {
  const std::uint64_t count = offsets.size();
  bool narrow = true;
  for (std::size_t i = 0; i < count && narrow; ++i)
    narrow = is_near(offsets[i], offsets[i / block_pieces * block_pieces]);
  const auto [least, most] = std::ranges::minmax(lens_bytes);
  const unsigned len_width = least == most ? 0 : width_of(most);
  const unsigned offset_width = narrow ? 4 : 8;
  const std::uint64_t blocks = (count + block_pieces - 1) / block_pieces;
  const std::uint64_t size =
      header_bytes + blocks * 16 + padded(count * (offset_width + len_width));

  auto words = std::make_shared<std::vector<std::uint64_t>>(size / 8);
  auto* const image = reinterpret_cast<std::byte*>(words->data());
  store(image, count);
  store(image + 8, std::uint64_t{offset_width} | std::uint64_t{len_width} << 8);
  store(image + 16, len_width == 0 ? least : 0);
  std::byte* const at_blocks = image + header_bytes;
  std::byte* const at_offsets = at_blocks + blocks * 16;
  std::byte* const at_lens = at_offsets + count * offset_width;
  std::uint64_t byte = 0;
  std::int64_t base = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % block_pieces == 0) {
      base = offsets[i];
      store(at_blocks + i / block_pieces * 16, base);
      store(at_blocks + i / block_pieces * 16 + 8, byte);
    }
    store_number(at_offsets + i * offset_width, as_unsigned(offsets[i] - (narrow ? base : 0)),
                 offset_width);
    store_number(at_lens + i * len_width, lens_bytes[i], len_width);
    byte += lens_bytes[i];
  }
  PieceList list;
  std::ignore = list.place_arrays(image, size);
  list.owner_ = std::move(words);
  return list;
}

// The block table is what searches rely on; sums must stay within 62 bits.
bool PieceList::is_sound() const {
  std::uint64_t byte = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (i % block_pieces == 0) {
      const std::int64_t base = block_offset(i / block_pieces);
      if (base <= -max_offset || base >= max_offset || base != this->offset(i) ||
          block_byte(i / block_pieces) != byte)
        return false;
    }
    const std::int64_t offset = this->offset(i);
    const std::uint64_t len = len_bytes(i);
    if (offset <= -max_offset || offset >= max_offset) return false;
    if (len == 0 || len > as_unsigned(max_offset) - byte ||
        len > as_unsigned(max_offset - std::max<std::int64_t>(offset, 0)))
      return false;
    byte += len;
  }
  return offset(0) == 0;
}

Result<PieceList> PieceList::decode(std::span<const std::byte>& in,
                                    const std::shared_ptr<const void>& owner) {
  const auto refused = [] {
    return fail(Code::internal, "decoding a list of pieces: the description is damaged");
  };
  PieceList list;
  if (!list.place_arrays(in.data(), in.size())) return refused();
  in = in.subspan(list.image_.size());
  if (owner) {
    list.owner_ = owner;
  } else {
    const auto copy =
        std::make_shared<std::vector<std::byte>>(list.image_.begin(), list.image_.end());
    std::ignore = list.place_arrays(copy->data(), copy->size());
    list.owner_ = copy;
  }
  if (!list.is_sound()) return refused();
  return list;
}

std::uint64_t PieceList::first_byte(std::uint64_t piece) const {
  if (len_width_ == 0) return piece * equal_len_bytes_;
  const std::uint64_t block = piece / block_pieces;
  std::uint64_t byte = block_byte(block);
  for (std::uint64_t i = block * block_pieces; i < piece; ++i) byte += len_bytes(i);
  return byte;
}

std::uint64_t PieceList::piece_of_byte(std::uint64_t byte) const {
  if (len_width_ == 0) return byte / equal_len_bytes_;
  const std::uint64_t block =
      last_block(block_count(), [&](std::uint64_t b) { return block_byte(b) <= byte; });
  std::uint64_t piece = block * block_pieces;
  for (byte -= block_byte(block); byte >= len_bytes(piece); ++piece) byte -= len_bytes(piece);
  return piece;
}

std::uint64_t PieceList::first_beyond(std::int64_t offset) const {
  std::uint64_t piece = block_pieces * last_block(block_count(), [&](std::uint64_t b) {
                          return block_offset(b) <= offset;
                        });
  const std::uint64_t end = std::min(count_, piece + block_pieces);
  while (piece < end && this->offset(piece) + as_signed(len_bytes(piece)) <= offset) ++piece;
  return piece;
}

PieceList::Facts PieceList::facts() const {
  Facts facts{.lowest = max_offset, .highest = -max_offset};
  std::int64_t previous_end = -max_offset;
  Divisor granule(len_bytes(0));
  const auto narrow = [&granule](std::uint64_t value) {
    if (!granule.divides(value)) granule = Divisor(std::gcd(granule.number(), value));
  };
  for (std::uint64_t i = 0; i < count_; ++i) {
    const std::int64_t begin = offset(i);
    const std::uint64_t len = len_bytes(i);
    const std::int64_t end = begin + as_signed(len);
    facts.len_bytes += len;
    facts.lowest = std::min(facts.lowest, begin);
    facts.highest = std::max(facts.highest, end);
    facts.ordered = facts.ordered && begin >= previous_end;
    previous_end = end;
    narrow(len);
    narrow(magnitude(begin));
  }
  facts.granule_bytes = granule.number();
  return facts;
}

}  // namespace shima
