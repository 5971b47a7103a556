// Splits and reads short texts.
#pragma once

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace shima::dse {

// A whole number, and nothing else.
[[nodiscard]] inline std::optional<int> parse_number(std::string_view text) {
  int number = 0;
  const char* const end = std::to_address(text.end());
  const auto parsed = std::from_chars(std::to_address(text.begin()), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return number;
}

// The parts between any of the separators; also empty ones.
[[nodiscard]] inline std::vector<std::string_view> parts_of(std::string_view text,
                                                            std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

// The words between white space.
[[nodiscard]] inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words = parts_of(text, " \t\r");
  std::erase_if(words, [](std::string_view word) { return word.empty(); });
  return words;
}

}  // namespace shima::dse
