// Parts of the page about a trace: cards, pictures, words for sizes and times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shima::tool {

extern const std::string_view page_style;

// Of pictures: the room for labels on the left, and what is right of it.
inline constexpr double label_width = 60;
inline constexpr double picture_width = 960;

[[nodiscard]] std::string bytes_text(double bytes);
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
[[nodiscard]] std::string seconds_text(double seconds);

// `lead` and `body` are HTML.
[[nodiscard]] std::string card(const std::string& title, const std::string& lead,
                               const std::string& body);
// `kind`: a class of the style.
struct Box {
  double x = 0;
  double y = 0;
  double w = 0;
  double h = 0;
};
[[nodiscard]] std::string rect(const char* kind, const Box& box, double opacity,
                               const std::string& title = {});
[[nodiscard]] std::string time_axis(double y, double seconds);
[[nodiscard]] std::string picture(double height, const std::string& body);

}  // namespace shima::tool
