// What members of an open file tell each other, by a channel: values, and hints behind them.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "collective/agree.h"
#include "collective/channel.h"
#include "file/hints.h"

namespace shima {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// One T of each member, read from where it arrived: after a meeting nothing may be lost for want of
// memory that only one member lacks.
template <class T>
class Values {
 public:
  explicit Values(Letters letters) : letters_(letters) {}

  [[nodiscard]] std::size_t size() const { return letters_.size(); }
  [[nodiscard]] T operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, letters_[i].data(), sizeof(T));
    return value;
  }
  [[nodiscard]] T front() const { return (*this)[0]; }
  template <class Test>
  [[nodiscard]] bool any(Test test) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (test((*this)[i])) return true;
    return false;
  }
  // What follows the first member's value.
  [[nodiscard]] std::span<const std::byte> first_rest() const {
    return letters_.front().subspan(sizeof(T));
  }

 private:
  Letters letters_;
};

// All members have the same letters, so they find them good or bad alike.
template <class T>
Result<Values<T>> values_in(Letters letters) {
  for (const auto letter : letters)
    if (letter.size() < sizeof(T))
      return fail(Code::internal, "processes of one job run different builds of Shima");
  return Values<T>(letters);
}

// What each member gives, known to all. Collective; an error that a member brings is everybody's.
template <class T>
Result<Values<T>> exchange_values(Channel& channel, const Result<T>& mine) {
  const auto letter =
      mine ? Result<std::span<const std::byte>>(bytes_of(*mine)) : std::unexpected(mine.error());
  SHIMA_TRY_ASSIGN(const Letters letters, channel.exchange(letter));
  return values_in<T>(letters);
}

// The same, with the first member's hints behind its value. Members with different hints would
// choose differently and lose each other's data, so the first member's hold for all.
template <class T>
Result<Values<T>> exchange_with_hints(Channel& channel, const Result<T>& mine, const Hints& hints) {
  const auto letter = caught([&]() -> Result<std::vector<std::byte>> {
    SHIMA_TRY(status_of(mine));
    const std::string text = channel.rank() == 0 ? encode_hints(hints) : std::string();
    std::vector<std::byte> made(sizeof(T) + text.size());
    std::memcpy(made.data(), &*mine, sizeof(T));
    std::memcpy(made.data() + sizeof(T), text.data(), text.size());
    return made;
  });
  const auto shown =
      letter ? Result<std::span<const std::byte>>(*letter) : std::unexpected(letter.error());
  SHIMA_TRY_ASSIGN(const Letters letters, channel.exchange(shown));
  return values_in<T>(letters);
}

template <class T>
Result<Hints> hints_in(const Values<T>& values) {
  const auto text = values.first_rest();
  return decode_hints({reinterpret_cast<const char*>(text.data()), text.size()});
}

}  // namespace shima
