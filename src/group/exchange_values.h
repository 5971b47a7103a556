// Exchanges one value of each member over a channel.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "group/channel.h"

namespace shima {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// One T of each member, read in place: after a meeting, a member must not lose a value because of
// its own lack of memory.
template <class T>
class Values {
 public:
  explicit Values(Messages messages) : messages_(messages) {}

  [[nodiscard]] std::size_t size() const { return messages_.size(); }
  [[nodiscard]] T operator[](std::size_t i) const {
    T value;
    std::memcpy(&value, messages_[i].data(), sizeof(T));
    return value;
  }
  [[nodiscard]] T front() const { return (*this)[0]; }
  template <class Test>
  [[nodiscard]] bool any(Test test) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (test((*this)[i])) return true;
    return false;
  }
  // The bytes after the first member's value.
  [[nodiscard]] std::span<const std::byte> first_rest() const {
    return messages_.front().subspan(sizeof(T));
  }

 private:
  Messages messages_;
};

// All members have the same messages, so all of them accept or refuse them.
template <class T>
Result<Values<T>> values_in(Messages messages) {
  for (const auto message : messages)
    if (message.size() < sizeof(T))
      return fail(Code::internal, "processes of one job run different builds of Shima");
  return Values<T>(messages);
}

// Sends the values of all members to every member. Collective; an error of one is returned by all.
template <class T>
Result<Values<T>> exchange_values(Channel& channel, const Result<T>& mine) {
  const auto message =
      mine ? Result<std::span<const std::byte>>(bytes_of(*mine)) : std::unexpected(mine.error());
  SHIMA_TRY_ASSIGN(const Messages messages, channel.exchange(message));
  return values_in<T>(messages);
}

}  // namespace shima
