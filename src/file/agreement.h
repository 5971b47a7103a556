// What members of an open file agree on, by a channel: values, outcomes, hints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collective/channel.h"
#include "file/hints.h"

namespace shima {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// What each member gives, known to all. Collective.
template <class T>
Result<std::vector<T>> exchange_values(Channel& channel, const T& mine) {
  SHIMA_TRY_ASSIGN(const auto letters, channel.exchange(bytes_of(mine)));
  std::vector<T> values(letters.size());
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (letters[i].size() != sizeof(T))
      return fail(Code::internal, "processes of one job run different builds of Shima");
    std::memcpy(&values[i], letters[i].data(), sizeof(T));
  }
  return values;
}

// The same for values that hints may follow; returns the first member's hints beside the values.
// Members with different hints would choose differently and lose each other's data, so the first
// member's hold for all.
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

// All members' worst; this member's own words if they are the worst. Collective.
[[nodiscard]] Status agree_on(Channel& channel, const Status& mine, const std::string& doing);

}  // namespace shima
