// Numbers and texts in the headers and data of messages.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace shima::dse {

class Packed {
 public:
  Packed& number(std::int64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packed& text(std::string_view value) {
    number(static_cast<std::int64_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  Packed& texts(const std::vector<std::string>& values) {
    number(static_cast<std::int64_t>(values.size()));
    for (const std::string& value : values) text(value);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what Packed has written. After something that does not fit all is empty, and is_whole() is
// false.
class Unpacked {
 public:
  explicit Unpacked(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] std::int64_t number() {
    std::int64_t value = 0;
    if (!has(sizeof value)) return 0;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  // A number from 0 to `most`.
  [[nodiscard]] int count(int most = std::numeric_limits<int>::max()) {
    const std::int64_t value = number();
    is_sound_ = is_sound_ && value >= 0 && value <= most;
    return is_sound_ ? static_cast<int>(value) : 0;
  }
  [[nodiscard]] std::string text() {
    const auto len = static_cast<std::size_t>(number());
    if (!has(len)) return {};
    std::string value(rest_.substr(0, len));
    rest_.remove_prefix(len);
    return value;
  }
  [[nodiscard]] std::vector<std::string> texts() {
    std::vector<std::string> values;
    for (std::int64_t left = number(); left > 0 && is_sound_; --left) values.push_back(text());
    return values;
  }
  // All has been read, and all of it was sound.
  [[nodiscard]] bool is_whole() const { return is_sound_ && rest_.empty(); }

 private:
  [[nodiscard]] bool has(std::size_t len) {
    is_sound_ = is_sound_ && len <= rest_.size();
    return is_sound_;
  }

  std::string_view rest_;
  bool is_sound_ = true;
};

}  // namespace shima::dse
