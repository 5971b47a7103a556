// Agreement on hints: all members of an open file use those of the first member.
#pragma once

#include <string>
#include <vector>

#include "file/hints.h"
#include "group/exchange_values.h"

namespace shima {

// As exchange_values, with the first member's hints appended to its value. With different hints
// members would choose different methods and lose each other's data.
template <class T>
Result<Values<T>> exchange_with_hints(Channel& channel, const Result<T>& mine, const Hints& hints) {
  const auto message = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(status_of(mine));
    const std::string text = channel.rank() == 0 ? encode_hints(hints) : std::string();
    std::vector<std::byte> made(sizeof(T) + text.size());
    std::memcpy(made.data(), &*mine, sizeof(T));
    std::memcpy(made.data() + sizeof(T), text.data(), text.size());
    return made;
  });
  const auto shown =
      message ? Result<std::span<const std::byte>>(*message) : std::unexpected(message.error());
  SHIMA_TRY_ASSIGN(const Messages messages, channel.exchange(shown));
  return values_in<T>(messages);
}

template <class T>
Result<Hints> hints_in(const Values<T>& values) {
  const auto text = values.first_rest();
  return decode_hints({reinterpret_cast<const char*>(text.data()), text.size()});
}

}  // namespace shima
