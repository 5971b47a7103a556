// Messages of plain data, put together and taken apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace shima {

template <class T>
void put_values(std::vector<std::byte>& message, std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// The next values of a message, which are then no part of it; false if it is too short.
template <class T>
[[nodiscard]] bool take_values(std::span<const std::byte>& message, std::span<T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (message.size() < values.size_bytes()) return false;
  if (!values.empty()) std::memcpy(values.data(), message.data(), values.size_bytes());
  message = message.subspan(values.size_bytes());
  return true;
}

// The same for values whose number comes before them.
template <class T>
void put_list(std::vector<std::byte>& message, std::span<const T> values) {
  const std::uint64_t count = values.size();
  put_values(message, std::span(&count, 1));
  put_values(message, values);
}
template <class T>
[[nodiscard]] bool take_list(std::span<const std::byte>& message, std::vector<T>& values) {
  std::uint64_t count = 0;
  if (!take_values(message, std::span(&count, 1))) return false;
  if (count > message.size() / sizeof(T)) return false;
  values.resize(count);
  return take_values(message, std::span(values));
}

}  // namespace shima
