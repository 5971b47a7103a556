// What writes the text of trace events: their list, members of an object, numbers and strings.
//
// A file may have millions of events, so formats are compiled and parts go into one buffer.
#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace shima::tool {

[[nodiscard]] inline std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds with three digits behind the point.
[[nodiscard]] inline std::string us_of(std::int64_t ns) {
  const auto size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format(FMT_COMPILE("{}{}.{:03}"), ns < 0 ? "-" : "", size / 1000, size % 1000);
}

// Text of the output, which is written in large parts.
class EventWriter {
 public:
  explicit EventWriter(std::ostream& to) : to_(to) {}
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;
  ~EventWriter() { flush(); }

  // An event follows. Its text goes to the end of the buffer.
  std::back_insert_iterator<fmt::memory_buffer> begin_event() {
    constexpr std::size_t part_bytes = std::size_t{64} << 10U;
    if (text_.size() >= part_bytes) flush();
    text_.append(std::string_view(std::exchange(is_first_, false) ? "\n" : ",\n"));
    return std::back_inserter(text_);
  }
  void name(const char* what, int process, int track, const std::string& text) {
    fmt::format_to(begin_event(),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                   process, track, quoted(text));
  }
  fmt::memory_buffer& text() { return text_; }

 private:
  void flush() {
    to_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
    text_.clear();
  }

  std::ostream& to_;
  fmt::memory_buffer text_;
  bool is_first_ = true;
};

// The members of an object.
class Members {
 public:
  explicit Members(fmt::memory_buffer& to) : to_(to) {}

  void add(std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(to_), FMT_COMPILE("{}\"{}\":{}"), comma(), name, value);
  }
  void add(std::string_view name, std::integral auto value) {
    fmt::format_to(std::back_inserter(to_), FMT_COMPILE("{}\"{}\":{}"), comma(), name, value);
  }
  void add_word(std::string_view name, std::string_view value) {
    if (value.empty()) return;
    fmt::format_to(std::back_inserter(to_), FMT_COMPILE("{}\"{}\":\"{}\""), comma(), name, value);
  }

 private:
  std::string_view comma() { return std::exchange(is_first_, false) ? "" : ","; }

  fmt::memory_buffer& to_;
  bool is_first_ = true;
};

}  // namespace shima::tool
