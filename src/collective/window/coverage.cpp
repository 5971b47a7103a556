#include "collective/window/coverage.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shima {
namespace {

constexpr std::uint64_t word_bits = 64;

// `count` one bits from bit `first` of a word; first + count <= 64, count > 0.
std::uint64_t ones(std::uint64_t first, std::uint64_t count) {
  return (~std::uint64_t{0} >> (word_bits - count)) << first;
}

}  // namespace

void Coverage::reset(TargetRange window, std::uint64_t granule_bytes) {
  window_ = window;
  granule_bytes_ = granule_bytes;
  bits_ = window.len_bytes() / granule_bytes;
  words_.assign((bits_ + word_bits - 1) / word_bits, 0);
}

void Coverage::mark(const Strip& strip) {
  const std::uint64_t offset = as_unsigned(strip.offset - window_.begin.value);
  if (strip.count > 1 && strip.len_bytes == granule_bytes_) {
    // One bit each: the common case of small pieces.
    std::uint64_t bit = offset / granule_bytes_;
    const std::uint64_t step = as_unsigned(strip.stride_bytes) / granule_bytes_;
    for (std::uint64_t i = 0; i < strip.count; ++i, bit += step)
      words_[bit / word_bits] |= std::uint64_t{1} << (bit % word_bits);
    return;
  }
  for (std::uint64_t i = 0; i < strip.count; ++i)
    mark_bits((offset + i * as_unsigned(strip.stride_bytes)) / granule_bytes_,
              strip.len_bytes / granule_bytes_);
}

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

std::uint64_t Coverage::len_bytes() const {
  std::uint64_t bits = 0;
  for (const std::uint64_t word : words_) bits += static_cast<std::uint64_t>(std::popcount(word));
  return bits * granule_bytes_;
}

bool Coverage::set_words(std::span<const std::byte> words) {
  std::memcpy(words_.data(), words.data(), std::min(words.size(), words_.size() * 8));
  const std::uint64_t used = bits_ % word_bits;
  return used == 0 || (words_.back() & ~ones(0, used)) == 0;
}

void Coverage::mark_bits(std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t shift = first % word_bits;
    const std::uint64_t here = std::min(count, word_bits - shift);
    words_[first / word_bits] |= ones(shift, here);
    first += here;
    count -= here;
  }
}

std::uint64_t Coverage::next_bit(std::uint64_t from, bool value) const {
  std::uint64_t word = from / word_bits;
  std::uint64_t mask = ~std::uint64_t{0} << (from % word_bits);
  for (; word < words_.size(); ++word, mask = ~std::uint64_t{0}) {
    const std::uint64_t found = (value ? words_[word] : ~words_[word]) & mask;
    if (found != 0)
      return std::min(word * word_bits + static_cast<std::uint64_t>(std::countr_zero(found)),
                      bits_);
  }
  return bits_;
}

}  // namespace shima
