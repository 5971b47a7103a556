// Hints that all members of an open file share: those of the first member.
#pragma once

#include <string>
#include <vector>

#include "file/hints.h"
#include "group/agreement.h"

namespace shima {

// As exchange_values, for values that hints may follow; returns the first member's hints beside
// them. With different hints members would choose differently and lose each other's data, so the
// first member's hints hold for all.
template <class T>
struct WithHints {
  std::vector<T> values;
  Hints hints;
};
template <class T>
Result<WithHints<T>> exchange_with_hints(Channel& channel, const T& mine, const Hints& hints) {
  const std::string text = channel.rank() == 0 ? encode_hints(hints) : std::string();
  std::vector<std::byte> letter(sizeof(T) + text.size());
  std::memcpy(letter.data(), &mine, sizeof(T));
  std::memcpy(letter.data() + sizeof(T), text.data(), text.size());
  SHIMA_TRY_ASSIGN(const auto letters, channel.exchange(letter));
  WithHints<T> all{std::vector<T>(letters.size()), {}};
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (letters[i].size() < sizeof(T))
      return fail(Code::internal, "processes of one job run different builds of Shima");
    std::memcpy(&all.values[i], letters[i].data(), sizeof(T));
  }
  const auto rest = std::span(letters.front()).subspan(sizeof(T));
  SHIMA_TRY_ASSIGN(all.hints,
                   decode_hints({reinterpret_cast<const char*>(rest.data()), rest.size()}));
  return all;
}

}  // namespace shima
