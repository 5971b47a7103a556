// What members of an open file agree on over their channel: values and outcomes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "group/channel.h"

namespace shima {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The values of all members, by rank. Collective.
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

// Returns the worst outcome of all members, with this member's own message if it is the worst.
// Collective.
[[nodiscard]] Status agree_on(Channel& channel, const Status& mine, const std::string& doing);

}  // namespace shima
