#include "collective/window/coverage.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shima {
void Coverage::reset(TargetRange window, std::uint64_t granule_bytes) {
  window_ = window;
  shift_ = static_cast<unsigned>(std::countr_zero(granule_bytes));
  bits_ = window.len_bytes() >> shift_;
  words_.assign((bits_ + word_bits - 1) / word_bits, 0);
}

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

std::uint64_t Coverage::len_bytes() const {
  std::uint64_t bits = 0;
  for (const std::uint64_t word : words_) bits += static_cast<std::uint64_t>(std::popcount(word));
  return bits << shift_;
}

bool Coverage::set_words(std::span<const std::byte> words) {
  std::memcpy(words_.data(), words.data(), std::min(words.size(), words_.size() * 8));
  const std::uint64_t used = bits_ % word_bits;
  return used == 0 || (words_.back() & ~ones(0, used)) == 0;
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
